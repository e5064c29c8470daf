-- Look up (B21): how many workers were lost with messages that were found again by a recall, whose reply does not say.
--
-- KEYS    1 recoveries
-- ARGV    the messages' stored texts
-- Returns one count each.
-- Promise reads only.
-- Cost    O(bytes of the texts).
-- @include expect recoveries
local recoveries = KEYS[1]
local wrong = expect(recoveries, 'hash')
if wrong then
  return wrong
end
local fields = {}
for i = 1, #ARGV do
  fields[i] = field(ARGV[i])
end
return counts(recoveries, fields)
