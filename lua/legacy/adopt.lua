-- Adopt (L7): gives orphans a deadline, so that the sweep returns them after retryAfter.
--
-- KEYS    1 processing  2 deadlines
-- ARGV    1 now override or ''  2 retryAfter seconds  3 longest key to read in full
--         4 token prefix, 24 hex  5.. values seen as orphans for at least retryAfter
-- Returns the number adopted. A value that is no orphan any more is left alone: the check is made again
--         here, so that two pools adopt an orphan once.
-- Promise only ever adds deadlines for values that stand in processing without one.
-- Cost    O(length of both keys).
-- @include expect clock variadic carried orphans
local processing, deadlines = KEYS[1], KEYS[2]
local wrong = expect(processing, 'list') or expect(deadlines, 'zset')
if wrong then
  return wrong
end
local alone = orphans(processing, deadlines, tonumber(ARGV[3]))
if not alone then
  return {0}
end
local free = {}
for i = 1, #alone do
  free[alone[i]] = (free[alone[i]] or 0) + 1
end
local score, adopted = expiry(clock(ARGV[1]), ARGV[2]), {}
for at = 5, #ARGV do
  local value = ARGV[at]
  if free[value] and free[value] > 0 then
    free[value] = free[value] - 1
    adopted[#adopted + 1] = score
    adopted[#adopted + 1] = ARGV[4] .. string.format('%08x:', at - 4) .. value
  end
end
if #adopted > 0 then
  redis.call('ZREM', deadlines, '-')
  variadic('ZADD', deadlines, adopted)
end
return {#adopted / 2}
