--- The conversation as text in a buffer: blocks that grow at the end and change in place.

local ns = vim.api.nvim_create_namespace("acphost")

local MARKS = { completed = "✓", in_progress = "▸", failed = "✗", pending = "·" }
local GROUPS = {
  user = "Title",
  thought = "Comment",
  tool = "Special",
  plan = "Identifier",
  note = "NonText",
  question = "WarningMsg",
}
local MEMORY = {
  loaded = "the agent loaded the session",
  replay_seen = "the agent loaded the session",
  resumed = "the agent took the session up again",
  cold_resumed = "the agent starts anew, with the history of this session as a text",
  load_failed_new = "the agent could not load the session and remembers nothing of it",
}

---@class acphost.Transcript
local Transcript = {}
Transcript.__index = Transcript

---@param buffer integer
function Transcript.new(buffer)
  return setmetatable({ buffer = buffer, blocks = {}, by_key = {} }, Transcript)
end

--- Start from an empty page.
function Transcript:clear()
  self.blocks, self.by_key = {}, {}
  self:_replace(0, -1, { "" })
end

-- blocks -------------------------------------------------------------------------------------------

---@private
function Transcript:_replace(first, last, lines)
  vim.bo[self.buffer].modifiable = true
  vim.api.nvim_buf_set_lines(self.buffer, first, last, false, lines)
  vim.bo[self.buffer].modifiable = false
  vim.bo[self.buffer].modified = false
end

---@private
function Transcript:_colour(block)
  local group = GROUPS[block.kind]
  if group and block.count > 0 then
    vim.api.nvim_buf_clear_namespace(self.buffer, ns, block.first, block.first + block.count)
    vim.api.nvim_buf_set_extmark(self.buffer, ns, block.first, 0, {
      end_row = block.first + block.count,
      hl_group = group,
      hl_eol = true,
    })
  end
end

---@private
function Transcript:_add(kind, lines, key)
  local last = self.blocks[#self.blocks]
  local first = last and last.first + last.count or 0
  local apart = last and (kind == "user" or kind ~= last.kind)
  if apart then
    table.insert(lines, 1, "")
  end
  self:_replace(first, -1, lines)
  local block = { kind = kind, first = first, count = #lines, key = key, apart = apart }
  table.insert(self.blocks, block)
  if key then
    self.by_key[key] = #self.blocks
  end
  self:_colour(block)
  return block
end

--- Show a block that is known by a key, or what has become of it.
---@private
function Transcript:_put(kind, lines, key)
  local index = self.by_key[key]
  if not index then
    self:_add(kind, lines, key)
    return
  end
  local block = self.blocks[index]
  if block.apart then
    table.insert(lines, 1, "")
  end
  self:_replace(block.first, block.first + block.count, lines)
  local grown = #lines - block.count
  block.count = #lines
  for later = index + 1, #self.blocks do
    self.blocks[later].first = self.blocks[later].first + grown
  end
  self:_colour(block)
end

--- Streamed text: goes on in the last block if that is of the same kind and run.
---@private
function Transcript:_stream(kind, text, run)
  local lines = vim.split(text, "\n", { plain = true })
  local last = self.blocks[#self.blocks]
  if not (last and last.kind == kind and last.run == run) then
    self:_add(kind, lines).run = run
    return
  end
  local end_row = last.first + last.count - 1
  local before = vim.api.nvim_buf_get_lines(self.buffer, end_row, end_row + 1, false)[1] or ""
  lines[1] = before .. lines[1]
  self:_replace(end_row, -1, lines)
  last.count = last.count + #lines - 1
  self:_colour(last)
end

--- A line of the plugin's own.
---@param text string
function Transcript:note(text)
  self:_add("note", { "— " .. text:gsub("%s*\n%s*", " ") })
end

-- events -------------------------------------------------------------------------------------------

local function text_of(block)
  if type(block) ~= "table" then
    return ""
  end
  if block.type == "text" or block.type == nil then
    return block.text or ""
  end
  local resource = block.resource or {}
  return ("[%s]"):format(block.name or block.uri or resource.uri or block.type)
end

local function lines_of(text)
  return vim.split(text, "\n", { plain = true })
end

local show = {}

show["message.user"] = function(self, event, payload, client_id)
  local parts = {}
  for _, block in ipairs(payload.content or {}) do
    table.insert(parts, text_of(block))
  end
  local lines = vim.tbl_map(function(line)
    return "> " .. line
  end, lines_of(table.concat(parts, "\n")))
  local origin = event.origin
  if origin and client_id and origin.clientId ~= client_id then
    lines[1] = ("> (%s) %s"):format(origin.clientName, lines[1]:sub(3))
  end
  self:_add("user", lines)
end

show["message.delta"] = function(self, event, payload)
  self:_stream("message", text_of(payload.content), event.hostRunId)
end

show["thought.delta"] = function(self, event, payload)
  self:_stream("thought", text_of(payload.content), event.hostRunId)
end

show["plan.updated"] = function(self, event, payload)
  local lines = {}
  for _, entry in ipairs(payload.entries or {}) do
    table.insert(lines, ("%s %s"):format(MARKS[entry.status] or "·", lines_of(entry.content or "")[1]))
  end
  if #lines > 0 then
    self:_put("plan", lines, "plan " .. (event.hostRunId or ""))
  end
end

local function tool(self, event, payload)
  local key = ("tool %s %s"):format(event.hostRunId or "", payload.toolCallId or "")
  self.tools = self.tools or {}
  local known = self.tools[key] or {}
  known.title = payload.title or known.title or payload.toolCallId or "tool"
  known.status = payload.status or known.status or "pending"
  if event.kind == "tool.completed" or event.kind == "tool.failed" then
    known.status = event.kind:sub(6)
  end
  self.tools[key] = known
  local line = ("%s %s"):format(MARKS[known.status] or "·", lines_of(known.title)[1])
  self:_put("tool", { line }, key)
end

for _, kind in ipairs({ "started", "updated", "completed", "failed" }) do
  show["tool." .. kind] = tool
end

show["permission.requested"] = function(self, _, payload)
  local call = payload.toolCall or {}
  local title = call.title or payload.kind or "permission"
  self:_put("question", { "? " .. lines_of(title)[1] }, "question " .. (payload.permissionId or ""))
end

show["elicitation.requested"] = function(self, _, payload)
  local key = "question " .. (payload.elicitationId or "")
  self:_put("question", { "? " .. lines_of(payload.message or "a form")[1] }, key)
end

local function answered(self, _, payload)
  local by = payload.by and payload.by.clientName
  local outcome = payload.optionId or payload.action or payload.outcome or payload.reason or "withdrawn"
  local line = ("? %s%s"):format(outcome, by and " by " .. by or "")
  local key = "question " .. (payload.permissionId or payload.elicitationId or "")
  local index = self.by_key[key]
  if index then
    local block = self.blocks[index]
    local row = block.first + block.count - 1
    local asked = vim.api.nvim_buf_get_lines(self.buffer, row, row + 1, false)[1]
    line = asked .. ": " .. line:sub(3)
  end
  self:_put("question", { line }, key)
end
show["permission.resolved"] = answered
show["permission.expired"] = answered
show["elicitation.resolved"] = answered
show["elicitation.expired"] = answered

local function bound(self, _, payload)
  local told = MEMORY[payload.mode or ""]
  if told then
    self:note(payload.reason and ("%s (%s)"):format(told, payload.reason) or told)
  end
end
for _, kind in ipairs({ "started", "resumed", "loaded", "cold_resumed" }) do
  show["binding." .. kind] = bound
end

show["run.completed"] = function(self, _, payload)
  if payload.stopReason and payload.stopReason ~= "end_turn" then
    self:note("the agent stopped: " .. payload.stopReason)
  elseif payload.empty then
    self:note("the agent ended the turn without a word")
  end
end

local function ended(self, event, payload)
  local said = event.kind:sub(5)
  for _, name in ipairs({ "error", "errorCode" }) do
    if payload[name] then
      said = said .. " · " .. tostring(payload[name])
    end
  end
  self:note(said)
end
show["run.failed"] = ended
show["run.cancelled"] = ended

show["run.interrupted"] = function(self, event, payload)
  ended(self, event, payload)
  self:note("its outcome is unknown: :AcphostResume tries it once more, :AcphostDismiss lets it be")
end

show["queue.held"] = function(self, _, payload)
  self:note("the queue is held: " .. (payload.reason or "") .. " (:AcphostRelease)")
end

show["error"] = function(self, _, payload)
  self:note("error: " .. tostring(payload.message or ""))
end

show["changed_files"] = function(self, _, payload)
  for _, said in ipairs({ { "changed: ", true }, { "changed meanwhile: ", false } }) do
    local paths = {}
    for _, file in ipairs(payload.changedFiles or {}) do
      if (file.certain or false) == said[2] then
        paths[#paths + 1] = file.path
      end
    end
    if #paths > 0 then
      self:note(said[1] .. table.concat(paths, ", "))
    end
  end
end

--- Show an event; kinds that say nothing to a person are passed over.
---@param event acphost.Event
---@param client_id? string our own, so that others can be named
function Transcript:show(event, client_id)
  local how = show[event.kind]
  if how then
    how(self, event, event.payload or {}, client_id)
  end
end

return Transcript
