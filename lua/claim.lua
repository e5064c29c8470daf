-- Claim (R6): takes the claim of a message, or holds it longer.
--
-- KEYS    1 claim
-- ARGV    1 token  2 expiry in milliseconds
-- Returns 1 when the claim is the token's now, 0 when it is another's.
-- Promise another's claim is not touched. Sent again with the same token it does the same again. The first write is a
--         removal, so that it runs on a full server too.
-- Cost    O(1).
-- @include expect
local claim = KEYS[1]
local wrong = expect(claim, 'string')
if wrong then
  return wrong
end
local holder = redis.call('GET', claim)
if holder and holder ~= ARGV[1] then
  return { 0 }
end
redis.call('DEL', claim)
redis.call('SET', claim, ARGV[1], 'PX', ARGV[2])
return { 1 }
