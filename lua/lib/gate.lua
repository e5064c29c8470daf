-- gate(leases, members, first, last, skip): the ack gate (L4, Z4). Removes members[first..last] from the
-- leases, but for the positions in skip, and returns by position from 1 whether each was there. A member
-- that was not is late: its lease ran out and somebody else may own the message by now, so nothing of it
-- may be touched. ZREM is the first write of the scripts that use it. O(n * log N).
local function gate(leases, members, first, last, skip)
  local held, live = scores(leases, members, first, last), {}
  for i = 1, #held do
    if held[i] and not (skip and skip[i]) then
      live[#live + 1] = members[first + i - 1]
    end
  end
  variadic('ZREM', leases, live)
  return held
end

-- gated(leases, members, first, last): the members[first..last] that passed the gate, by position; false for the others.
local function gated(leases, members, first, last)
  local held = gate(leases, members, first, last)
  for i = 1, #held do
    held[i] = held[i] and members[first + i - 1]
  end
  return held
end
