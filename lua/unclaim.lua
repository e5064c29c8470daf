-- Unclaim (R6): ends a claim.
--
-- KEYS    1 claim
-- ARGV    1 token
-- Returns 1 when the claim was the token's, 0 when it had run out or is another's.
-- Promise another's claim is not touched.
-- Cost    O(1).
-- @include expect
local claim = KEYS[1]
local wrong = expect(claim, 'string')
if wrong then
  return wrong
end
if redis.call('GET', claim) ~= ARGV[1] then
  return { 0 }
end
return { redis.call('DEL', claim) }
