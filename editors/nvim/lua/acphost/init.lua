--- acphost in Neovim: chats with agents that outlive Neovim.

local buffers = require("acphost.buffers")
local Chat = require("acphost.chat")
local config = require("acphost.config")
local memory = require("acphost.memory")
local questions = require("acphost.questions")
local Session = require("acphost.session")
local Socket = require("acphost.socket")
local waiting = require("acphost.waiting")

local M = {}

---@class acphost.Place a folder with its chat
---@field chat acphost.Chat
---@field session acphost.Session

---@type table<string, acphost.Place>
local places = {}
---@type acphost.Socket?
local socket
---@type acphost.InitializeResult?
local info
local is_told = false

M.setup = config.setup

local function tell(text, level)
  vim.notify("acphost: " .. text, level or vim.log.levels.INFO)
end

-- the connection -----------------------------------------------------------------------------------

local function hello()
  local version = vim.version()
  return {
    protocolVersion = 1,
    clientInfo = {
      name = "neovim",
      version = ("%d.%d.%d"):format(version.major, version.minor, version.patch),
    },
    clientId = info and info.clientId or nil,
    capabilities = {
      permissions = true,
      elicitation = true,
      fs = { readTextFile = config.options.offer_buffers, writeTextFile = false },
    },
  }
end

local function draw()
  for _, place in pairs(places) do
    place.chat:draw_state(place.session, socket and socket.state)
  end
end

local function on_ready(result)
  local is_other_store = info and info.storeId ~= result.storeId
  info = result
  if is_told then
    tell("the daemon is back")
    is_told = false
  end
  for _, place in pairs(places) do
    if is_other_store then
      place.chat.transcript:clear()
    end
    M._begin(place)
  end
  draw()
end

local function on_lost(reason)
  if not is_told then
    tell(reason .. "; trying again (`acphost serve` starts a daemon)", vim.log.levels.WARN)
    is_told = true
  end
  for _, place in pairs(places) do
    place.session.is_live, place.session.subscription = false, nil
  end
  draw()
end

local function on_notification(method, params)
  if method == "events" then
    for _, place in pairs(places) do
      place.session:take(params)
    end
  end
end

local function on_request(method, params)
  if method == "fs/read_text_file" and config.options.offer_buffers then
    return buffers.read(params)
  end
end

local function connection()
  if not socket then
    socket = Socket.new({
      path = config.socket_path,
      hello = hello,
      on_ready = on_ready,
      on_lost = on_lost,
      on_notification = on_notification,
      on_request = on_request,
    })
  end
  socket:open()
  return socket
end

-- chats --------------------------------------------------------------------------------------------

local function view_of(place)
  return {
    event = function(event, is_news)
      if is_news and not place.has_news and place.was_elsewhere then
        place.chat.transcript:note("while you were away")
      end
      place.has_news = place.has_news or is_news
      place.chat.transcript:show(event, info and info.clientId)
      if event.kind == "changed_files" or event.kind == "document.changed" then
        -- Clean buffers are read again, changed ones are left alone and Neovim says so.
        vim.cmd.checktime()
      end
    end,
    state = function()
      draw()
      place.chat:scroll()
    end,
    question = function(decision)
      if config.options.ask_at_once and place.chat:window() then
        M._ask(place, decision)
      else
        tell("an agent asks something: :AcphostPermission", vim.log.levels.WARN)
      end
    end,
    settled = function(permission_id, payload)
      if place.asking == permission_id then
        place.asking = nil
        local by = payload.by and payload.by.clientName
        tell("the question is closed" .. (by and ", answered by " .. by or ""))
        vim.api.nvim_exec_autocmds("User", { pattern = "AcphostQuestionClosed" })
      end
    end,
    caught_up = function()
      place.was_elsewhere = false
    end,
  }
end

--- The chat of a folder; it is not shown by this.
---@param cwd? string
---@return acphost.Place
function M.place(cwd)
  cwd = vim.uv.fs_realpath(cwd or vim.fn.getcwd()) or vim.fn.getcwd()
  local place = places[cwd]
  if not place then
    place = { chat = Chat.new(cwd) }
    place.session = Session.new(connection(), cwd, view_of(place))
    place.session.agent = config.options.agent
    places[cwd] = place
    if socket and socket.state == "ready" then
      M._begin(place)
    end
  end
  connection()
  return place
end

--- Take a place up with the daemon that is there now: the session it had, or the one remembered.
---@param place acphost.Place
function M._begin(place)
  local session = place.session
  local remembered = memory.load(session.cwd)
  if session.id and session.store == info.storeId then
    session:resume()
    return
  end
  session.id, session.store = nil, info.storeId
  if not remembered then
    session:resume()
  elseif remembered.storeId ~= info.storeId then
    memory.forget(session.cwd)
    session:resume()
  else
    place.was_elsewhere = remembered.activeRun ~= nil
    M._attach(place, remembered.sessionId, remembered)
  end
end

---@param place acphost.Place
---@param session_id string
---@param remembered? acphost.Remembered
function M._attach(place, session_id, remembered)
  place.session.is_opening = true
  connection():request("session/get", { sessionId = session_id }, function(problem, session)
    place.session.is_opening = false
    if problem then
      if (problem.data or {}).code == "session_not_found" then
        memory.forget(place.session.cwd)
      end
      place.session:resume()
      return
    end
    place.has_news = false
    place.chat.transcript:clear()
    place.session:follow(session, remembered, config.options.history)
  end)
end

--- Show the chat of the current folder.
---@return acphost.Place
function M.open()
  local place = M.place()
  place.chat:open()
  place.chat:draw_state(place.session, socket and socket.state)
  return place
end

--- Send a message. With `range` the lines of the current buffer go along as a selection, else the
--- current file as a link, if it is one.
---@param text string
---@param range? {first: integer, last: integer}
---@param done? fun(problem: table?, run: acphost.Run?)
function M.send(text, range, done)
  local place = M.open()
  local prompt, refs = { { type = "text", text = text } }, {}
  local block, ref
  if range then
    block, ref = buffers.block(0, range.first, range.last)
  elseif config.options.send_buffer then
    block, ref = buffers.link(0)
  end
  if block then
    table.insert(prompt, 1, block)
    table.insert(refs, ref)
  end
  place.session:send(prompt, refs, function(problem, run)
    if problem then
      tell(problem.message, vim.log.levels.ERROR)
    end
    if done then
      done(problem, run)
    end
  end)
end

--- Ask a person to answer an agent's question.
---@param place acphost.Place
---@param decision acphost.Decision
function M._ask(place, decision)
  place.asking = decision.permissionId
  questions.ask(decision, function(method, params)
    place.asking = nil
    if not method then
      return -- it stays open: :AcphostPermission asks again
    end
    if place.session.questions[decision.permissionId] then
      place.session:answer(method, params)
    end
  end)
end

--- Ask what is open, one question after the other.
function M.permissions()
  local place = M.open()
  local _, decision = next(place.session.questions)
  if decision then
    M._ask(place, decision)
  else
    tell("nothing is to be answered")
  end
end

--- Choose a session of this folder, or of all with `all`.
---@param all boolean
function M.sessions(all)
  local place = M.open()
  connection():request("session/list", { limit = 200 }, function(problem, page)
    if problem then
      tell(problem.message, vim.log.levels.ERROR)
      return
    end
    local items = vim.tbl_filter(function(session)
      return all or vim.uv.fs_realpath(session.cwd) == place.session.cwd
    end, page.items)
    vim.ui.select(items, {
      prompt = "Session",
      kind = "acphost.session",
      format_item = function(session)
        local title = session.title or session.sessionId
        return ("%s  %s  %s"):format(session.agentId, session.status, title)
      end,
    }, function(session)
      if session then
        M._attach(place, session.sessionId)
      end
    end)
  end)
end

--- Begin a new session with the next message; the old one stays where it is.
---@param agent? string
function M.new(agent)
  local place = M.open()
  memory.forget(place.session.cwd)
  local store = place.session.store
  if place.session.subscription then
    connection():request("events/unsubscribe", { subscriptionId = place.session.subscription })
  end
  place.session = Session.new(connection(), place.session.cwd, view_of(place))
  place.session.agent, place.session.store = agent or config.options.agent, store
  place.chat.transcript:clear()
  place.chat:draw_state(place.session, socket and socket.state)
end

--- Choose a waiting message to take back, to change, or to send next.
function M.queue()
  local place = M.open()
  place.session:refresh(function()
    waiting.choose(place.session, function(text, done)
      place.chat:edit(text, done)
    end)
  end)
end

--- Try an interrupted run once more, or say that it has been seen.
---@param method "run/resume"|"run/dismiss"
function M.interrupted(method)
  local session = M.open().session
  local run = session.run
  if not run or run.status ~= "interrupted" then
    tell("no run of this session was interrupted")
    return
  end
  local params = { hostRunId = run.hostRunId }
  if method == "run/resume" then
    params.resumeRequestId = "nvim-" .. run.hostRunId
  end
  session:call(method, params)
end

--- End the connection; the daemon and its agents go on.
function M.disconnect()
  if socket then
    socket:close()
    socket = nil
  end
end

return M
