-- sweep(processing, deadlines, ready, now, limit): the leases that have run out (L3). Each due deadline is
-- removed first; its value then leaves processing for the tail of ready, byte for byte, in order of expiry.
-- A deadline whose value is no longer in processing, or that has no token, is dropped and nothing is
-- pushed. Returns the deadlines removed and the values pushed. O(limit * log N) near the head.
local function sweep(processing, deadlines, ready, now, limit)
  local due = redis.call('ZRANGEBYSCORE', deadlines, '-inf', string.format('%.0f', now), 'LIMIT', 0, limit)
  if #due == 0 then
    return 0, 0
  end
  variadic('ZREM', deadlines, due)
  local values, want, mark = {}, {}, nil
  for i = 1, #due do
    local value = carried(due[i])
    if value then
      mark = mark or string.sub(due[i], 1, 32)
      values[#values + 1] = value
      want[value] = (want[value] or 0) + 1
    end
  end
  remove(processing, want, #values, values, mark)
  local back = {}
  for i = 1, #values do
    local value = values[i]
    if want[value] > 0 then
      want[value] = want[value] - 1
    else
      back[#back + 1] = value
    end
  end
  variadic('RPUSH', ready, back)
  return #due, #back
end
