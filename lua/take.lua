-- Take (redrive, purge; D1): takes records out of the dead letters; what is to go on goes to the tail of a ready list.
--
-- KEYS    1 dead letters, then those of these that the letters of ARGV[2] name, in this order: b notify of the dead
--         letters, r ready of the target, t notify of the target
-- ARGV    1 mark, 32 hex, that is nobody's value  2 letters  3.. pairs record, text to put in ready; the text is not
--         looked at without a target
-- Returns the positions of the pairs, from 1, whose record was not there any more.
-- Promise one atomic step: a record is in the dead letters or its text in ready. What is not there is not put in ready. Of
--         equal records each pair takes one. Safe to send again.
-- Cost    O(pairs) near the head of the dead letters.
-- @include expect variadic strike remove
local dead, bell, ready, tokenList = KEYS[1], nil, nil, nil
for i = 2, #KEYS do
  local letter = string.sub(ARGV[2], i - 1, i - 1)
  if letter == 'b' then
    bell = KEYS[i]
  elseif letter == 'r' then
    ready = KEYS[i]
  else
    tokenList = KEYS[i]
  end
end
local wrong = expect(dead, 'list') or bell and expect(bell, 'list') or ready and expect(ready, 'list')
  or tokenList and expect(tokenList, 'list')
if wrong then
  return wrong
end
local values, want = {}, {}
for i = 3, #ARGV, 2 do
  values[#values + 1] = ARGV[i]
  want[ARGV[i]] = (want[ARGV[i]] or 0) + 1
end
-- Removes nothing; a full server lets a script run whose first write is a removal (B43).
redis.call('LTRIM', dead, 0, -1)
remove(dead, want, #values, values, ARGV[1])
local gone, texts = {}, {}
for i = #values, 1, -1 do
  if want[values[i]] > 0 then
    want[values[i]] = want[values[i]] - 1
    gone[#gone + 1] = i
    values[i] = false
  end
end
for i = 1, #values do
  if values[i] then
    texts[#texts + 1] = ARGV[2 + 2 * i]
  end
end
if ready then
  variadic('RPUSH', ready, texts)
end
if tokenList then
  tokens(tokenList, #texts)
end
if bell then
  local left = redis.call('LLEN', dead)
  if left == 0 then
    redis.call('DEL', bell)
  elseif redis.call('LLEN', bell) > left then
    redis.call('LTRIM', bell, 0, left - 1)
  end
end
return gone
