-- Migrate (Z2): promotes what is due when no reserver does it.
--
-- KEYS    1 ready  2 delayed  3 reserved  4 notify  [5 recoveries]
-- ARGV    1 now override or ''  2 retryAfter seconds, '' = leases never run out  3 most members, 1 to 1,000
--         [4 seconds to keep recoveries; lost workers are counted]
-- Returns how many were moved. The caller repeats while a full chunk was (B23).
-- Promise a member is in its set or in ready.
-- Cost    O(limit * log N).
-- @include expect clock variadic recoveries lost migrate
local wrong = expect(KEYS[1], 'list') or expect(KEYS[2], 'zset') or expect(KEYS[3], 'zset') or expect(KEYS[4], 'list')
  or KEYS[5] and expect(KEYS[5], 'hash')
if wrong then
  return wrong
end
return {promote(KEYS[1], KEYS[2], KEYS[3], KEYS[4], clock(ARGV[1]), tonumber(ARGV[3]), ARGV[2] ~= '', KEYS[5],
  ARGV[4])}
