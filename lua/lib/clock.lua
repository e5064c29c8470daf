-- clock(override): whole seconds of the server's clock; the override, seconds as text, is for tests (R2).
local function clock(override)
  if override ~= '' then
    return math.floor(tonumber(override))
  end
  return tonumber(redis.call('TIME')[1])
end

-- expiry(now, seconds): the score of a lease as text, formatted once per call. Empty seconds: never (L5, Z3).
local function expiry(now, seconds)
  if seconds == '' then
    return '+inf'
  end
  return string.format('%.0f', now + tonumber(seconds))
end
