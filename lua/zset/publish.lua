-- Publish (Z1): messages to the tail of ready, one notify token each.
--
-- KEYS    1 ready  2 notify
-- ARGV    bodies
-- Returns nothing.
-- Promise all or nothing; a full server refuses it (the first write grows).
-- Cost    O(n).
-- @include expect variadic
local wrong = expect(KEYS[1], 'list') or expect(KEYS[2], 'list')
if wrong then
  return wrong
end
variadic('RPUSH', KEYS[1], ARGV)
tokens(KEYS[2], #ARGV)
return {}
