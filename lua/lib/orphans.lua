-- orphans(processing, deadlines, limit): the multiset difference of the values in processing and the values
-- that have a deadline (L7). Returns nil when either key is longer than the limit, else the orphans in list
-- order and the number of deadlines whose value is not in processing. O(length of both).
local function orphans(processing, deadlines, limit)
  local size, leases = redis.call('LLEN', processing), redis.call('ZCARD', deadlines)
  if size > limit or leases > limit then
    return nil
  end
  local leased, dangling = {}, 0
  for from = 0, leases - 1, 1000 do
    local members = redis.call('ZRANGE', deadlines, from, from + 999)
    for i = 1, #members do
      local value = carried(members[i])
      if value then
        leased[value] = (leased[value] or 0) + 1
      else
        dangling = dangling + 1
      end
    end
  end
  local alone = {}
  for from = 0, size - 1, 1000 do
    local values = redis.call('LRANGE', processing, from, from + 999)
    for i = 1, #values do
      local value = values[i]
      if leased[value] and leased[value] > 0 then
        leased[value] = leased[value] - 1
      else
        alone[#alone + 1] = value
      end
    end
  end
  for _, count in pairs(leased) do
    dangling = dangling + count
  end
  return alone, dangling
end
