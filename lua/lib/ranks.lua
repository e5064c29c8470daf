-- ranks(processing, deadlines, first, last): where the values of the members ARGV[first..last] should stand in
-- processing, by position from 1, false for a member that is gone; nil when they need not be known, because the
-- list is short or the members stand close together at one of its ends. Reads only, and must run before the
-- members are removed.
--
-- Values enter processing in the order in which their members enter deadlines, whose scores are whole seconds
-- and whose members begin with the time of the call (L2): so the rank of a member, which Redis finds in
-- O(log N), is the index of its value. Renewals, other clocks and orphans disturb that: it is a guess.
local function ranks(processing, deadlines, first, last)
  local length, n = redis.call('LLEN', processing), last - first + 1
  if length < 512 or length <= 2 * n then
    return nil
  end
  local lowest = redis.call('ZRANK', deadlines, ARGV[first])
  local highest = redis.call('ZRANK', deadlines, ARGV[last])
  if lowest and highest and (highest < 2 * n or lowest >= length - 2 * n) then
    return nil
  end
  local all = {}
  for i = 1, n do
    all[i] = redis.call('ZRANK', deadlines, ARGV[first + i - 1])
  end
  return all
end

-- seek(processing, value, guess): the index of a copy of the value at or near the guess, or nil. A false guess costs
-- a window of 65 values.
local function seek(processing, value, guess)
  if guess >= 0 and redis.call('LINDEX', processing, guess) == value then
    return guess
  end
  local from = math.max(guess - 32, 0)
  local window = redis.call('LRANGE', processing, from, math.max(guess + 32, 0))
  for i = 1, #window do
    if window[i] == value then
      return from + i - 1
    end
  end
  return nil
end

-- strike(processing, want, values, guesses, mark): removes from the list one copy of each value that is found near its
-- guess, and takes it off want. Returns how many. Each is first overwritten with the mark, so that the others
-- keep their places, and one LREM at the end removes the marks: a walk over short values for the whole call, where
-- an LREM of its own for each would walk over half of the list (B38). The mark is the token of a member that is
-- being settled, so it is nobody's value.
--
-- After four false guesses in a row the order is not what ranks takes it for, and the rest is left alone.
local function strike(processing, want, values, guesses, mark)
  local struck, missed, shift = 0, 0, 0
  for i = 1, #values do
    local value = values[i]
    if want[value] > 0 then
      local index = seek(processing, value, guesses[i] + shift)
      if index then
        redis.call('LSET', processing, index, mark)
        want[value] = want[value] - 1
        struck, missed, shift = struck + 1, 0, index - guesses[i]
      else
        missed = missed + 1
        if missed == 4 then
          break
        end
      end
    end
  end
  if struck > 0 then
    redis.call('LREM', processing, struck, mark)
  end
  return struck
end
