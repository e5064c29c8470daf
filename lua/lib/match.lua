-- match(deadlines, first, last): removes from the deadlines the members whose tokens are ARGV[first..last], in
-- reservation order, the first of them given in full. Returns the rank of the first and the members by position;
-- false for those that it has not come across. That is the gate (L4) for members the caller has not sent: a token is of
-- one reservation only (L2). What is come across is always the batch's beginning, so of a token that is given twice the
-- first decides: the second is not come across, and late when it is sent again in full.
--
-- Members stand in deadlines in the order of their expiry and their tokens' time, so what is settled in
-- reservation order stands close together, between a few that are still in work. A window from the first on is
-- walked beside the tokens, then the next one, as long as at least half of each is theirs. Naming neither members nor
-- values saves sending, copying and hashing each body once, and the AOF gets ranks in place of members.
local function match(deadlines, first, last)
  local members, find = {}, string.find
  for i = 1, last - first + 1 do
    members[i] = false
  end
  local start = redis.call('ZRANK', deadlines, ARGV[first]) or 0
  local at, from = first, start
  while at <= last do
    local window = redis.call('ZRANGE', deadlines, from, from + last - at)
    local size, hits, runs = #window, {}, {}
    for i = 1, size do
      local position = at + #hits
      if position <= last and find(window[i], ARGV[position], 1, true) == 1 then
        hits[#hits + 1] = window[i]
        if runs[#runs] == i - 1 then
          runs[#runs] = i
        else
          runs[#runs + 1], runs[#runs + 2] = i, i
        end
      end
    end
    if size == 0 or #hits * 2 < size then
      break
    end
    if #runs <= 16 then
      for i = #runs, 2, -2 do
        redis.call('ZREMRANGEBYRANK', deadlines, from + runs[i - 1] - 1, from + runs[i] - 1)
      end
    else
      variadic('ZREM', deadlines, hits)
    end
    for i = 1, #hits do
      members[at - first + i] = hits[i]
    end
    at, from = at + #hits, from + size - #hits
  end
  return start, members
end
