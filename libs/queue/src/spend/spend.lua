-- Adds one model call to the spend of a day.
-- KEYS spend of the day, line of tenants. ARGV tenant, seconds to keep the spend, then name and amount of each measure.
function scripts.countSpend()
  for i = 3, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
  -- Lists the tenant even if it has never submitted a task.
  redis.call('HSETNX', KEYS[2], ARGV[1], 0)
  redis.call('EXPIRE', KEYS[1], ARGV[2])
end
