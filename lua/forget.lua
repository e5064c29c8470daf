-- Forget (B21): messages that were acked or dead-lettered need no count of lost workers any more.
--
-- KEYS    1 recoveries
-- ARGV    the messages' stored texts
-- Returns how many counts were removed.
-- Promise only removes. Safe to send again.
-- Cost    O(bytes of the texts).
-- @include expect variadic recoveries
local recoveries = KEYS[1]
local wrong = expect(recoveries, 'hash')
if wrong then
  return wrong
end
local fields, before = {}, redis.call('HLEN', recoveries)
for i = 1, #ARGV do
  fields[i] = field(ARGV[i])
end
variadic('HDEL', recoveries, fields)
return {before - redis.call('HLEN', recoveries)}
