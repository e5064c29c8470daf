-- migrate(source, ready, notify, now, limit, recoveries, keep): due members go in score order to the tail of ready, each
-- with one notify token (Z2). Returns how many. With recoveries, the lost workers are counted (B21). O(limit * log N).
local function migrate(source, ready, notify, now, limit, recoveries, keep)
  if limit < 1 then
    return 0
  end
  local due, excused = overdue(source, now, limit, recoveries)
  variadic('ZREM', source, due)
  variadic('RPUSH', ready, due)
  tokens(notify, #due)
  if recoveries then
    local died = {}
    for i = 1, #due do
      if not excused[due[i]] then
        died[#died + 1] = due[i]
      end
    end
    lost(recoveries, died, keep)
  end
  return #due
end

-- promote(ready, delayed, reserved, notify, now, limit, leases, recoveries, keep): what is due of delayed, then, when
-- leases run out at all, of reserved; at most limit together.
local function promote(ready, delayed, reserved, notify, now, limit, leases, recoveries, keep)
  local moved = migrate(delayed, ready, notify, now, limit)
  if leases then
    moved = moved + migrate(reserved, ready, notify, now, limit - moved, recoveries, keep)
  end
  return moved
end
