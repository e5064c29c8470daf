-- seek(list, value, guess): the index of a copy of the value at or near the guess, or nil. A false guess costs a
-- window of 65 values.
local function seek(list, value, guess)
  if guess >= 0 and redis.call('LINDEX', list, guess) == value then
    return guess
  end
  local from = math.max(guess - 32, 0)
  local window = redis.call('LRANGE', list, from, math.max(guess + 32, 0))
  for i = 1, #window do
    if window[i] == value then
      return from + i - 1
    end
  end
  return nil
end

-- unmark(list, count, mark, lowest): removes the marks, none of which stands below the lowest index, from the end
-- that is nearer.
local function unmark(list, count, mark, lowest)
  if count > 0 then
    local tail = lowest * 2 > redis.call('LLEN', list)
    redis.call('LREM', list, tail and -count or count, mark)
  end
end

-- strike(list, want, values, mark, guesses): removes from a long list one copy of each value that is wanted, and takes
-- it off want. Each is first overwritten with the mark, so that the others keep their places, and one LREM at the
-- end removes the marks: a walk over short values for the whole call, where an LREM of its own for each would
-- walk over half of the list (B38). The mark is the token of a member that is being settled, so it is nobody's value.
--
-- A value is looked for where the guesses say, corrected by how far the last one was off; without guesses behind the
-- one before. Where that fails, LPOS walks from the tail, where the latest reservations stand, and what it does
-- not find is gone.
local function strike(list, want, values, mark, guesses)
  local struck, shift, lowest, index = 0, 0, math.huge, nil
  for i = 1, #values do
    local value = values[i]
    if want[value] > 0 then
      local guess = guesses and guesses[i] + shift or index and index + 1
      local found = guess and seek(list, value, guess) or redis.call('LPOS', list, value, 'RANK', -1)
      if found then
        redis.call('LSET', list, found, mark)
        want[value] = want[value] - 1
        struck, lowest, index = struck + 1, math.min(lowest, found), found
        shift = guesses and found - guesses[i]
      end
    end
  end
  unmark(list, struck, mark, lowest)
end
