-- Hand back (Z7, Z11): returns messages nobody started to the head of ready, as they were before reserve and
-- in the order they were reserved, each with one notify token.
--
-- KEYS    1 reserved  2 ready  3 notify
-- ARGV    pairs reserved member, ready text, in reservation order
-- Returns pairs position, 'late' for those that were no longer reserved, or given before in this call.
-- Promise one atomic step, gated. Not safe to send again: the text may be reserved anew as the same member
--         by then (Z4), so an unknown outcome is left to the lease.
-- Cost    O(n * log N).
-- @include expect variadic gate
local reserved, ready, notify = KEYS[1], KEYS[2], KEYS[3]
local wrong = expect(reserved, 'zset') or expect(ready, 'list') or expect(notify, 'list')
if wrong then
  return wrong
end
local members, texts = {}, {}
for at = 1, #ARGV, 2 do
  members[#members + 1] = ARGV[at]
  texts[#texts + 1] = ARGV[at + 1]
end
local held = gate(reserved, members, 1, #members)
local back, reply = {}, {}
for i = 1, #members do
  if held[i] then
    back[#back + 1] = texts[i]
  else
    reply[#reply + 1] = i
    reply[#reply + 1] = 'late'
  end
end
prepend(ready, back)
tokens(notify, #back)
return reply
