-- Sweep (L3): returns expired leases to ready when no reserver does it.
--
-- KEYS    1 ready  2 processing  3 deadlines  [4 recoveries]
-- ARGV    1 now override or ''  2 most deadlines, 1 to 1,000  [3 seconds to keep recoveries; lost workers are counted]
-- Returns deadlines removed, values pushed. The caller repeats while a full chunk was removed (B23).
-- Promise as reserve: a value is in processing with its deadline or in ready.
-- Cost    O(limit * log N) near the head of processing.
-- @include expect clock variadic strike remove carried recoveries lost sweep
local wrong = expect(KEYS[1], 'list') or expect(KEYS[2], 'list') or expect(KEYS[3], 'zset')
  or KEYS[4] and expect(KEYS[4], 'hash')
if wrong then
  return wrong
end
local removed, pushed = sweep(KEYS[2], KEYS[3], KEYS[1], clock(ARGV[1]), ARGV[2], KEYS[4], ARGV[3])
return {removed, pushed}
