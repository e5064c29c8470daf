-- field(text): the name under which the lost workers of a message are counted (B21): the SHA-1 of its stored text without
-- the digits of any attempts, inside a frame's body too. So each retry of a message has one name, a foreign body has
-- one as well, and nothing is parsed. Equal bodies share a count, and one that another SDK has re-encoded begins anew.
local function field(text)
  return redis.sha1hex((string.gsub(text, '(attempts\\?"%s*:%s*)%d+', '%1')))
end

-- counts(recoveries, fields): how many workers were lost with each. What is no number counts as none.
local function counts(recoveries, fields)
  local all = {}
  for from = 1, #fields, 1000 do
    local some = redis.call('HMGET', recoveries, unpack(fields, from, math.min(from + 999, #fields)))
    for i = 1, #some do
      local digits = some[i] and string.match(some[i], '^%d+$')
      all[#all + 1] = tonumber(digits or 0)
    end
  end
  return all
end
