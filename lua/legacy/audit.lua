-- Audit (L7): finds values in processing that have no deadline, which no sweep can ever return.
--
-- KEYS    1 processing  2 deadlines
-- ARGV    1 longest key to read in full  2 most orphans to return
-- Returns length of processing, number of deadlines, orphans in all (-1 = too long to read), deadlines
--         without a value, then up to ARGV[2] orphaned values in list order.
-- Promise reads only.
-- Cost    O(length of both keys), at most twice ARGV[1].
-- @include expect carried orphans
local wrong = expect(KEYS[1], 'list') or expect(KEYS[2], 'zset')
if wrong then
  return wrong
end
local size, leases = redis.call('LLEN', KEYS[1]), redis.call('ZCARD', KEYS[2])
local alone, dangling = orphans(KEYS[1], KEYS[2], tonumber(ARGV[1]))
if not alone then
  return {size, leases, -1, 0}
end
local reply = {size, leases, #alone, dangling}
for i = 1, math.min(#alone, tonumber(ARGV[2])) do
  reply[#reply + 1] = alone[i]
end
return reply
