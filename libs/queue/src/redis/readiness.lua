-- Answers the commands of ARGV that the user of this connection may not run. KEYS[1] serves as their key and as their channel.
-- Redis before 7 can't tell, so the answer is empty.
function scripts.missingCommands()
  local missing = {}
  if not redis.acl_check_cmd then return missing end
  for _, command in ipairs(ARGV) do
    local known, may = pcall(redis.acl_check_cmd, command, KEYS[1], KEYS[1], KEYS[1])
    if not (known and may) then table.insert(missing, command) end
  end
  return missing
end
