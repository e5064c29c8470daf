-- Audit: finds what no sweep brings back. In this layout a reservation cannot lose its score, so there are no
-- orphans; but a member scored +inf was reserved by a pool whose leases never run out, and only that pool
-- ends it.
--
-- KEYS    1 reserved
-- ARGV    none
-- Returns members reserved, members that never expire.
-- Promise reads only.
-- Cost    O(log N).
-- @include expect
local wrong = expect(KEYS[1], 'zset')
if wrong then
  return wrong
end
return {redis.call('ZCARD', KEYS[1]), redis.call('ZCOUNT', KEYS[1], '+inf', '+inf')}
