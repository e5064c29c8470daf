-- Settle (L4, L6, D3): ends reservations. All of them leave the deadlines and processing; some have one more
-- thing done with them.
--
-- KEYS    1 processing  2 deadlines  3 ready  4 dead letters
-- ARGV    1 n  2..n+1 deadline members, or of all but the first only the 32 digits, in reservation order, then one triple for
--         each that is not a plain ack: position from 1, 'requeue' or 'dead', the text to push
-- Returns pairs position, 'late', 'lost' or 'unseen' for those that were not done: late = its lease was gone,
--         or it was given before in this call; lost = the lease was held but processing no longer had the value;
--         unseen = only digits were given and they were not come across; it is to be sent again in full. Empty when
--         all were done.
-- Promise one atomic step; a late or lost one pushes nothing and touches no redelivered copy. Safe to
--         send again: a second run finds every member gone and reports it late.
-- Cost    O(n * log N) in reservation order; see strike and remove for the rest.
-- @include expect variadic strike remove gate match ranks leave
local processing, deadlines, ready, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local n = tonumber(ARGV[1])
local requeues, deads = false, false
for at = n + 2, #ARGV, 3 do
  if ARGV[at + 1] == 'dead' then
    deads = true
  else
    requeues = true
  end
end
local wrong = expect(processing, 'list') or expect(deadlines, 'zset')
  or requeues and expect(ready, 'list') or deads and expect(dead, 'list')
if wrong then
  return wrong
end

local digits, start, guesses, held = n > 1 and #ARGV[3] == 32
if digits then
  start, held = match(deadlines, 2, n + 1)
else
  start, guesses = ranks(processing, deadlines, 2, n + 1)
  held = gated(deadlines, ARGV, 2, n + 1)
end
local left = leave(processing, held, start, guesses)
local back, buried = {}, {}
for at = n + 2, #ARGV, 3 do
  if left[tonumber(ARGV[at])] then
    local list = ARGV[at + 1] == 'dead' and buried or back
    list[#list + 1] = ARGV[at + 2]
  end
end
variadic('RPUSH', ready, back)
variadic('RPUSH', dead, buried)

local reply = {}
for i = 1, n do
  if not left[i] then
    reply[#reply + 1] = i
    reply[#reply + 1] = held[i] and 'lost' or digits and 'unseen' or 'late'
  end
end
return reply
