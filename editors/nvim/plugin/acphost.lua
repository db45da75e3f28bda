if vim.g.loaded_acphost or vim.fn.has("nvim-0.10") == 0 then
  return
end
vim.g.loaded_acphost = true

local function acphost()
  return require("acphost")
end

local function command(name, description, run, options)
  options = vim.tbl_extend("force", { desc = description }, options or {})
  vim.api.nvim_create_user_command(name, run, options)
end

local function range_of(given)
  return given.range > 0 and { first = given.line1, last = given.line2 } or nil
end

command("Acphost", "Show the chat of this folder", function()
  acphost().open()
end)

command("AcphostSend", "Send a message; a range goes along as the selection", function(given)
  acphost().send(given.args, range_of(given))
end, { nargs = "+", range = true })

command("AcphostAsk", "Ask for a message and send it; a range goes along", function(given)
  local range = range_of(given)
  vim.ui.input({ prompt = "Message: " }, function(text)
    if text and text ~= "" then
      acphost().send(text, range)
    end
  end)
end, { range = true })

command("AcphostWrite", "Write a message of several lines", function()
  local place = acphost().open()
  place.chat:write(function(text)
    acphost().send(text)
  end)
end)

command("AcphostStop", "Stop the turn; with ! nothing that waits starts after it", function(given)
  acphost().open().session:stop(given.bang)
end, { bang = true })

command("AcphostPermission", "Answer what an agent asks", function()
  acphost().permissions()
end)

command("AcphostQueue", "Show the waiting messages, and change one", function()
  acphost().queue()
end)

command("AcphostRelease", "Let a held queue go on", function()
  local session = acphost().open().session
  session:call("queue/release", { sessionId = session.id })
end)

command("AcphostHold", "Let nothing more of the queue start", function()
  local session = acphost().open().session
  session:call("queue/hold", { sessionId = session.id })
end)

command("AcphostResume", "Try an interrupted run once more", function()
  acphost().interrupted("run/resume")
end)

command("AcphostDismiss", "Let an interrupted run be", function()
  acphost().interrupted("run/dismiss")
end)

command("AcphostSessions", "Choose a session of this folder; with ! of all folders", function(given)
  acphost().sessions(given.bang)
end, { bang = true })

command("AcphostNew", "Begin a new session with the next message", function(given)
  acphost().new(given.args ~= "" and given.args or nil)
end, { nargs = "?" })
