--- jumpseat for Neovim: the public functions, for configurations and commands.

local M = {}

---@type jumpseat.Chat[]
local chats = {}
---@type jumpseat.Chat?
local current

local function highlights()
  local links = {
    JumpseatTitle = "Title",
    JumpseatSpeaker = "Title",
    JumpseatHint = "Comment",
    JumpseatBusy = "WarningMsg",
    JumpseatReady = "Normal",
    JumpseatRunning = "DiagnosticWarn",
    JumpseatDone = "DiagnosticOk",
    JumpseatFailed = "DiagnosticError",
    JumpseatThought = "Comment",
    JumpseatDetails = "Comment",
    JumpseatAdded = "Added",
    JumpseatRemoved = "Removed",
  }
  for name, link in pairs(links) do
    vim.api.nvim_set_hl(0, name, { link = link, default = true })
  end
end

--- Set options; see |jumpseat-options|. Optional.
---@param options? table
function M.setup(options)
  options = options or {}
  if type(options.tools) == "table" then
    require("jumpseat.tools").check(options.tools)
  end
  require("jumpseat.config").set(options)
end

--- Called once, by plugin/jumpseat.lua.
function M.start()
  highlights()
  local group = vim.api.nvim_create_augroup("jumpseat", {})
  vim.api.nvim_create_autocmd("ColorScheme", { group = group, callback = highlights })
  vim.api.nvim_create_autocmd("BufEnter", {
    group = group,
    callback = function(event)
      require("jumpseat.editor").remember(event.buf)
    end,
  })
  vim.api.nvim_create_autocmd("ModeChanged", {
    group = group,
    callback = function()
      if current then
        current:show_state()
      end
    end,
  })
  vim.api.nvim_create_autocmd("VimLeavePre", {
    group = group,
    callback = function()
      require("jumpseat.server").stop()
    end,
  })
end

local function show(chat)
  if current and current ~= chat then
    current:close()
  end
  current = chat
  chat:open()
  return chat
end

local function add(id)
  local chat = require("jumpseat.chat").new(id)
  chats[#chats + 1] = chat
  return chat
end

--- Return the current chat, created if there is none.
---@return jumpseat.Chat
function M.chat()
  if not current or not current:is_valid() then
    current = add()
  end
  return current
end

--- Open the chat.
function M.open()
  return show(M.chat())
end

--- Open the chat, or close it if it is open.
function M.toggle()
  if current and current:is_open() then
    current:close()
  else
    M.open()
  end
end

--- Open a new chat with a session of its own.
function M.new()
  return show(add())
end

--- Send a prompt, whether the chat is open or not.
---@param prompt string
---@param steer? boolean add the prompt to the running turn
function M.send(prompt, steer)
  M.chat():send(prompt, steer)
end

--- Attach lines of the current buffer to the next prompt.
---@param first integer
---@param last integer
function M.attach(first, last)
  M.chat():attach(require("jumpseat.editor").lines(vim.api.nvim_get_current_buf(), first, last))
end

--- Stop the running turn.
function M.stop()
  if current then
    current:stop()
  end
end

--- Switch to the named model, or let the user choose one.
---@param name? string
function M.model(name)
  local session = M.chat().session
  if name and name ~= "" then
    session:use_model(name)
  else
    require("jumpseat.models").pick(session)
  end
end

local MODES = {
  { "interactive", "ask me before anything is changed" },
  { "plan", "make a plan first and ask for its approval" },
  { "autopilot", "continue until the task is done" },
}

--- Return the names of the modes.
---@return string[]
function M.modes()
  return vim.tbl_map(function(mode)
    return mode[1]
  end, MODES)
end

--- Switch to the named mode, or let the user choose one.
---@param name? string
function M.mode(name)
  local session = M.chat().session
  if name and name ~= "" then
    if not vim.tbl_contains(M.modes(), name) then
      local known = table.concat(M.modes(), ", ")
      return vim.notify(("jumpseat: unknown mode %q; expected %s"):format(name, known), vim.log.levels.ERROR)
    end
    return session:use_mode(name)
  end
  local function line(mode)
    local mark = mode[1] == (session.mode or "interactive") and "● " or "  "
    return ("%s%s: %s"):format(mark, mode[1], mode[2])
  end
  vim.ui.select(MODES, { prompt = "Mode", kind = "jumpseat_mode", format_item = line }, function(mode)
    if mode then
      session:use_mode(mode[1])
    end
  end)
end

local function resume(id)
  for _, chat in ipairs(chats) do
    if chat.session.id == id and chat:is_valid() then
      return show(chat)
    end
  end
  local chat = show(add(id))
  chat:replay()
end

--- Return a time in ISO 8601 as seen from now: "5 min ago", "3 h ago", "2 days ago"; after a week, its date.
---@param time string
---@return string
local function time_ago(time)
  local year, month, day, hour, minute = time:match("^(%d+)-(%d+)-(%d+)T(%d+):(%d+)")
  if not year then
    return time
  end
  local then_utc = os.time({ year = year, month = month, day = day, hour = hour, min = minute, isdst = false })
  local now_utc = os.time(vim.tbl_extend("force", os.date("!*t"), { isdst = false }))
  local minutes = math.floor((now_utc - then_utc) / 60)
  if minutes < 0 or minutes >= 7 * 24 * 60 then
    return ("%s-%s-%s"):format(year, month, day)
  elseif minutes < 60 then
    return minutes == 0 and "just now" or ("%d min ago"):format(minutes)
  elseif minutes < 24 * 60 then
    return ("%d h ago"):format(math.floor(minutes / 60))
  end
  local days = math.floor(minutes / (24 * 60))
  return ("%d day%s ago"):format(days, days == 1 and "" or "s")
end

local function session_line(one)
  return ("%-10s  %s"):format(time_ago(one.modifiedTime or ""), one.summary and one.summary:gsub("%s+", " ") or one.sessionId)
end

--- List the sessions of this folder that a person may resume, the latest first.
---@param done fun(problem: {message: string}?, sessions: table[]?)
function M.sessions(done)
  local params = { filter = { cwd = vim.fn.getcwd() } }
  require("jumpseat.server").request("session.list", params, function(problem, result)
    if problem then
      return done(problem)
    end
    local found = vim.tbl_filter(function(one)
      return not (one.oneOff or one.unanswered)
    end, result.sessions)
    table.sort(found, function(a, b)
      return a.modifiedTime > b.modifiedTime
    end)
    done(nil, found)
  end)
end

--- Return the sessions whose lines contain all words of a search.
local function search(sessions, text)
  local words = vim.split(text:lower(), "%s+", { trimempty = true })
  return vim.tbl_filter(function(one)
    local line = (session_line(one) .. " " .. one.sessionId):lower()
    return vim.iter(words):all(function(word)
      return line:find(word, 1, true) ~= nil
    end)
  end, sessions)
end

--- Resume an earlier session: the one with an id, or one of this folder that the user chooses. Other text than an id
--- searches these.
---@param text? string
function M.resume(text)
  for _, chat in ipairs(chats) do
    if chat.session.id == text and chat:is_valid() then
      return show(chat)
    end
  end
  M.sessions(function(problem, sessions)
    if problem then
      return vim.notify("jumpseat: " .. problem.message, vim.log.levels.ERROR)
    end
    if text and text ~= "" then
      local found = search(sessions, text)
      -- The id may be that of a session of another folder.
      if #found <= 1 then
        return vim.schedule(function()
          resume(found[1] and found[1].sessionId or text)
        end)
      end
      sessions = found
    end
    if #sessions == 0 then
      return vim.notify("jumpseat: this folder has no sessions yet")
    end
    vim.schedule(function()
      vim.ui.select(sessions, { prompt = "Resume", kind = "jumpseat_session", format_item = session_line }, function(one)
        if one then
          resume(one.sessionId)
        end
      end)
    end)
  end)
end

--- Return the state of the current chat, for a status line; "" if there is none.
---@return string
function M.status()
  return current and current:status() or ""
end

return M
