-- sweep(processing, deadlines, ready, now, limit, recoveries, keep): the leases that have run out (L3). Each due deadline is
-- removed first; its value then leaves processing for the tail of ready, byte for byte, in order of expiry.
-- A deadline whose value is no longer in processing, or that has no token, is dropped and nothing is
-- pushed. Returns the deadlines removed and the values pushed. With recoveries, the lost workers are counted (B21).
-- O(limit * log N) near the head.
local function sweep(processing, deadlines, ready, now, limit, recoveries, keep)
  local due, excused = overdue(deadlines, now, limit, recoveries)
  if #due == 0 then
    return 0, 0
  end
  variadic('ZREM', deadlines, due)
  local values, want, mark, spared = {}, {}, nil, {}
  for i = 1, #due do
    local value = carried(due[i])
    if value then
      mark = mark or string.sub(due[i], 1, 32)
      values[#values + 1] = value
      spared[#values] = excused and excused[due[i]]
      want[value] = (want[value] or 0) + 1
    end
  end
  remove(processing, want, #values, values, mark)
  local back, died = {}, {}
  for i = 1, #values do
    local value = values[i]
    if want[value] > 0 then
      want[value] = want[value] - 1
    else
      back[#back + 1] = value
      if recoveries and not spared[i] then
        died[#died + 1] = value
      end
    end
  end
  variadic('RPUSH', ready, back)
  if recoveries then
    lost(recoveries, died, keep)
  end
  return #due, #back
end
