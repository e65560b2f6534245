--- Slash commands of prompts, of the plugin and of the server, and their completion.

local server = require("jumpseat.server")

local M = {}

local TIMEOUT_MS = 2000

---@class jumpseat.Command
---@field about string
---@field run fun(chat: jumpseat.Chat, rest: string)

---@type table<string, jumpseat.Command>
local OWN = {
  help = {
    about = "list the commands",
    run = function(chat)
      M.list(chat.session, function(found)
        local lines = {}
        for _, one in ipairs(found) do
          lines[#lines + 1] = ("/%s  %s"):format(one.name, one.about)
        end
        chat.transcript:note(table.concat(lines, "\n"))
      end)
    end,
  },
  model = {
    about = "choose a model, or switch to the named one",
    run = function(_, rest)
      require("jumpseat").model(rest)
    end,
  },
  mode = {
    about = "change the mode: interactive, plan or autopilot",
    run = function(_, rest)
      require("jumpseat").mode(rest)
    end,
  },
  new = {
    about = "start a new chat",
    run = function()
      require("jumpseat").new()
    end,
  },
  resume = {
    about = "resume an earlier session of this folder",
    run = function(_, rest)
      require("jumpseat").resume(rest)
    end,
  },
  stop = {
    about = "stop the running turn",
    run = function(chat)
      chat:stop()
    end,
  },
}

--- Parse a slash command; nil for a prompt, which may begin with a path.
---@param text string
---@return string? name
---@return string? rest
function M.parse(text)
  local name, rest = vim.trim(text):match("^/(%a[%w_-]*)(.*)$")
  if name and (rest == "" or rest:find("^%s")) then
    return name:lower(), vim.trim(rest)
  end
end

--- List all commands by name; those of the plugin take precedence over the server's. `done(found)` is always called.
---@param session jumpseat.Session
---@param done fun(found: {name: string, about: string}[])
function M.list(session, done)
  local found = {}
  for name, command in pairs(OWN) do
    found[#found + 1] = { name = name, about = command.about }
  end
  local function settle()
    table.sort(found, function(a, b)
      return a.name < b.name
    end)
    done(found)
  end
  -- Do not start a server only to list its commands.
  if not session.attached then
    return settle()
  end
  server.request("session.commands.list", { sessionId = session.id }, function(failure, result)
    for _, one in ipairs(failure and {} or result.commands) do
      if not OWN[one.name] then
        found[#found + 1] = { name = one.name, about = one.description or "" }
      end
    end
    settle()
  end)
end

--- Run a command; its output or error is shown in the chat.
---@param chat jumpseat.Chat
---@param name string
---@param rest string
function M.run(chat, name, rest)
  if OWN[name] then
    return OWN[name].run(chat, rest)
  end
  chat.session:ensure(function(problem)
    if problem then
      return chat.transcript:note("✗ " .. problem)
    end
    local params = { sessionId = chat.session.id, name = name, input = rest }
    server.request("session.commands.invoke", params, function(failure, result)
      if failure then
        chat.transcript:note(("✗ %s; /help lists the commands"):format(failure.message))
      elseif result.kind == "agent-prompt" then
        local more = { displayPrompt = result.displayPrompt, agentMode = result.mode }
        chat.session:send(result.prompt, nil, false, nil, more)
      elseif result.kind == "select-subcommand" then
        local lines = { result.title .. ":" }
        for _, option in ipairs(result.options) do
          lines[#lines + 1] = ("/%s %s  %s"):format(name, option.name, option.description)
        end
        chat.transcript:note(table.concat(lines, "\n"))
      elseif result.text or result.message then
        chat.transcript:note(result.text or result.message)
      end
    end)
  end)
end

local function files(start)
  local found = {}
  for _, path in ipairs(vim.fn.getcompletion(start, "file")) do
    found[#found + 1] = { word = "@" .. path, abbr = path }
  end
  return found
end

--- Complete /commands at the beginning of a prompt, and @paths anywhere; see |complete-functions|.
---@param find_start integer
---@param base string
function M.omnifunc(find_start, base)
  if find_start == 1 then
    local row, column = unpack(vim.api.nvim_win_get_cursor(0))
    local before = vim.api.nvim_get_current_line():sub(1, column)
    if row == 1 and before:find("^/[%w_-]*$") then
      return 0
    end
    local at = before:find("@%S*$")
    return at and at - 1 or -3
  elseif vim.startswith(base, "@") then
    return files(base:sub(2))
  end
  local chat, found = require("jumpseat").chat(), nil
  M.list(chat.session, function(list)
    found = list
  end)
  vim.wait(TIMEOUT_MS, function()
    return found
  end, 5)
  local matches = {}
  for _, one in ipairs(found or {}) do
    if vim.startswith("/" .. one.name, base:lower()) then
      matches[#matches + 1] = { word = "/" .. one.name, menu = one.about }
    end
  end
  return matches
end

return M
