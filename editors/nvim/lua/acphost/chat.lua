--- The chat of a folder: transcript, the line about its state, what waits, and the place to write.

local config = require("acphost.config")
local Transcript = require("acphost.transcript")

local ns = vim.api.nvim_create_namespace("acphost.queue")

---@class acphost.Chat
local Chat = {}
Chat.__index = Chat

---@param cwd string
function Chat.new(cwd)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, "acphost://" .. cwd)
  vim.bo[buffer].bufhidden = "hide"
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].filetype = "acphost"
  local self = setmetatable({ cwd = cwd, buffer = buffer }, Chat)
  self.transcript = Transcript.new(buffer)
  for keys, command in pairs({
    ["<CR>"] = "AcphostWrite",
    i = "AcphostWrite",
    a = "AcphostWrite",
    ["<C-c>"] = "AcphostStop",
    ["?"] = "AcphostPermission",
  }) do
    vim.keymap.set("n", keys, "<Cmd>" .. command .. "<CR>", { buffer = buffer, nowait = true })
  end
  return self
end

---@return integer? window that shows the chat in this tab page
function Chat:window()
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.api.nvim_win_get_buf(window) == self.buffer then
      return window
    end
  end
end

--- Show the chat, without leaving the window one is in.
function Chat:open()
  if not self:window() then
    local here = vim.api.nvim_get_current_win()
    vim.cmd(config.options.window)
    local window = vim.api.nvim_get_current_win()
    vim.api.nvim_win_set_buf(window, self.buffer)
    vim.wo[window].wrap = true
    vim.wo[window].linebreak = true
    vim.wo[window].number = false
    vim.wo[window].relativenumber = false
    vim.api.nvim_set_current_win(here)
    self:draw_state()
  end
  self:scroll()
end

--- Keep the end in sight, unless somebody reads further up.
function Chat:scroll()
  local last = vim.api.nvim_buf_line_count(self.buffer)
  for _, window in ipairs(vim.fn.win_findbuf(self.buffer)) do
    if window ~= vim.api.nvim_get_current_win() then
      vim.api.nvim_win_set_cursor(window, { last, 0 })
    end
  end
end

-- what there is beside the transcript ----------------------------------------------------------------

---@param session acphost.Session
---@param connection string the state of the socket
---@return string
function Chat.describe(session, connection)
  local parts = { session.agent or "?", session.status or "new" }
  if session.status_reason then
    table.insert(parts, session.status_reason)
  end
  if #session.queued > 0 then
    table.insert(parts, #session.queued .. " queued")
  end
  if next(session.questions) then
    table.insert(parts, vim.tbl_count(session.questions) .. " to answer")
  end
  if connection ~= "ready" then
    table.insert(parts, "no daemon")
  end
  return table.concat(parts, " · ")
end

--- Draw the state above the chat, and what waits below it.
---@param session? acphost.Session
---@param connection? string
function Chat:draw_state(session, connection)
  self.session = session or self.session
  self.connection = connection or self.connection or "idle"
  if not self.session then
    return
  end
  local text = Chat.describe(self.session, self.connection):gsub("%%", "%%%%")
  for _, window in ipairs(vim.fn.win_findbuf(self.buffer)) do
    vim.wo[window].winbar = " " .. text
  end
  vim.b[self.buffer].acphost_state = Chat.describe(self.session, self.connection)
  vim.api.nvim_buf_clear_namespace(self.buffer, ns, 0, -1)
  local lines = {}
  for place, item in ipairs(self.session.queued) do
    local preview = vim.split(item.preview or "", "\n", { plain = true })[1]
    table.insert(lines, { { ("  … %d: %s"):format(place, preview), "Comment" } })
  end
  if #lines > 0 then
    local last = vim.api.nvim_buf_line_count(self.buffer) - 1
    vim.api.nvim_buf_set_extmark(self.buffer, ns, last, 0, { virt_lines = lines })
  end
end

-- writing --------------------------------------------------------------------------------------------

--- A buffer to write in; <CR> in normal mode or <C-s> is done with it, q leaves it.
---@param name string
---@param done fun(text: string) called unless nothing is written there
---@return integer
local function paper(name, done)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, name)
  vim.bo[buffer].bufhidden = "hide"
  vim.bo[buffer].filetype = "markdown"
  local function finish()
    local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
    local text = vim.trim(table.concat(lines, "\n"))
    vim.cmd.stopinsert()
    if text ~= "" then
      vim.api.nvim_buf_set_lines(buffer, 0, -1, false, {})
    end
    vim.cmd.close() -- it may be the end of the buffer, too
    if text ~= "" then
      done(text)
    end
  end
  vim.keymap.set("n", "<CR>", finish, { buffer = buffer })
  vim.keymap.set({ "n", "i" }, "<C-s>", finish, { buffer = buffer })
  vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = buffer })
  return buffer
end

---@param buffer integer
---@param hint string
function Chat:_below(buffer, hint)
  vim.api.nvim_set_current_win(assert(self:window()))
  vim.cmd("belowright 6split")
  vim.api.nvim_win_set_buf(0, buffer)
  vim.wo.winbar = hint
end

--- Open a few lines to write a message in; what is not sent stays there.
---@param send fun(text: string)
function Chat:write(send)
  self:open()
  if not (self.input and vim.api.nvim_buf_is_valid(self.input)) then
    self.input = paper("acphost://" .. self.cwd .. "#write", send)
  end
  local window = vim.fn.win_findbuf(self.input)[1]
  if window then
    vim.api.nvim_set_current_win(window)
  else
    self:_below(self.input, " <C-s> sends")
  end
  vim.cmd.startinsert()
end

--- Change a text that is there already.
---@param text string
---@param done fun(text: string)
function Chat:edit(text, done)
  self:open()
  self.edits = (self.edits or 0) + 1
  local buffer = paper(("acphost://%s#edit-%d"):format(self.cwd, self.edits), done)
  vim.bo[buffer].bufhidden = "wipe"
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(text, "\n", { plain = true }))
  self:_below(buffer, " <C-s> changes it, q leaves it as it is")
end

return Chat
