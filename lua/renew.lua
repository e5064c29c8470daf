-- Renew (L8, Z10), both layouts: moves the expiry of held leases forward.
--
-- KEYS    1 deadlines or reserved
-- ARGV    1 now override or ''  2 retryAfter seconds, '' = never  3.. members
-- Returns the positions, from 1, of the members whose lease is gone (lost).
-- Promise a score is raised or stays, never lowered; +inf stays; an absent member is not created. What is excused
--         (excuse.lua) stays: a renewal that comes after it must not make it count as a lost worker (B21). The first
--         write is a removal that removes nothing ('-' can be no member: a deadline starts with 32 hex
--         digits, a reserved member with an object), so a full server lets the script run.
-- Cost    O(n * log N).
-- @include expect clock variadic
local leases = KEYS[1]
local wrong = expect(leases, 'zset')
if wrong then
  return wrong
end
-- An excused score ends in '.5'.
local point = string.byte('.')
local held = scores(leases, ARGV, 3, #ARGV)
local score, raised, reply = expiry(clock(ARGV[1]), ARGV[2]), {}, {}
for i = 1, #held do
  if not held[i] then
    reply[#reply + 1] = i
  elseif string.byte(held[i], -2) ~= point then
    raised[#raised + 1] = score
    raised[#raised + 1] = ARGV[2 + i]
  end
end
if #raised > 0 then
  redis.call('ZREM', leases, '-')
  for from = 1, #raised, 1000 do
    redis.call('ZADD', leases, 'XX', 'GT', unpack(raised, from, math.min(from + 999, #raised)))
  end
end
return reply
