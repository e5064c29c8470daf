-- Delay (Z1): messages to delayed, due after a delay in whole seconds.
--
-- KEYS    1 delayed
-- ARGV    1 now override or ''  2.. pairs delay in seconds, body
-- Returns 1 or 0 for each: 0 = delayed holds the same bytes already, which keep their time (B05).
-- Promise a full server refuses it before anything is written (the first write grows).
-- Cost    O(n * log N).
-- @include expect clock
local wrong = expect(KEYS[1], 'zset')
if wrong then
  return wrong
end
local now, reply = clock(ARGV[1]), {}
for at = 2, #ARGV, 2 do
  local score = string.format('%.0f', now + tonumber(ARGV[at]))
  reply[#reply + 1] = redis.call('ZADD', KEYS[1], 'NX', score, ARGV[at + 1])
end
return reply
