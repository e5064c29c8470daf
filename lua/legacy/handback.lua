-- Hand back (L9): returns messages nobody started to the head of ready, in the order they were reserved.
--
-- KEYS    1 processing  2 deadlines  3 ready
-- ARGV    deadline members in reservation order
-- Returns pairs position, 'late' or 'lost' for those that were not done, as settle does.
-- Promise one atomic step, gated like an ack; no attempt is charged. Safe to send again.
-- Cost    O(n * log N) near the head of processing.
-- @include expect variadic strike remove gate ranks leave
local processing, deadlines, ready = KEYS[1], KEYS[2], KEYS[3]
local wrong = expect(processing, 'list') or expect(deadlines, 'zset') or expect(ready, 'list')
if wrong then
  return wrong
end
local start, guesses = ranks(processing, deadlines, 1, #ARGV)
local held = gated(deadlines, ARGV, 1, #ARGV)
local left = leave(processing, held, start, guesses)
local back, reply = {}, {}
for i = 1, #ARGV do
  if left[i] then
    back[#back + 1] = string.sub(ARGV[i], 34)
  else
    reply[#reply + 1] = i
    reply[#reply + 1] = held[i] and 'lost' or 'late'
  end
end
prepend(ready, back)
return reply
