-- variadic(command, key, values): one command per 1,000 values; unpack fails at 8,000 (B37). Returns the sum of the
-- replies, for ZREM how many were removed. An even chunk keeps the score and member pairs of ZADD together.
local function variadic(command, key, values)
  local sum = 0
  for from = 1, #values, 1000 do
    sum = sum + redis.call(command, key, unpack(values, from, math.min(from + 999, #values)))
  end
  return sum
end

-- scores(key, members, from, to): the score of each of members[from..to], false where absent.
local function scores(key, members, from, to)
  local all = {}
  for at = from, to, 1000 do
    local some = redis.call('ZMSCORE', key, unpack(members, at, math.min(at + 999, to)))
    for i = 1, #some do
      all[#all + 1] = some[i]
    end
  end
  return all
end

-- prepend(key, values): puts the values before the head of a list and keeps their order.
local function prepend(key, values)
  local reversed, size = {}, #values
  for i = 1, size do
    reversed[i] = values[size + 1 - i]
  end
  variadic('LPUSH', key, reversed)
end

-- tokens(key, count): count notify tokens, one for each message that became ready (Z1, Z2, Z11, D1).
local function tokens(key, count)
  if count < 1 then
    return
  end
  local ones = {}
  for i = 1, count do
    ones[i] = '1'
  end
  variadic('RPUSH', key, ones)
end
