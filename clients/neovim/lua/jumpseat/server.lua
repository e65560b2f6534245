--- The server process of this Neovim, shared by all chats: started when first needed, and again after it died.

local config = require("jumpseat.config")
local rpc = require("jumpseat.rpc")

local M = {}

local PROTOCOL = 3
local HANDSHAKE_MS = 30000

---@type table<string, jumpseat.Session> by session id
local sessions = {}
---@type jumpseat.Peer?
local peer
---@type (fun(problem: string?, peer: jumpseat.Peer?))[]
local waiting = {}
local ready = false

local function settle(problem)
  local callbacks = waiting
  waiting = {}
  for _, callback in ipairs(callbacks) do
    callback(problem, not problem and peer or nil)
  end
end

local handlers = {}

function handlers.notified(method, params)
  local session = method == "session.event" and sessions[params.sessionId]
  if session then
    session:receive(params.event)
  end
end

function handlers.requested(method, params, reply)
  local session = sessions[params.sessionId]
  if method == "userInput.request" and session then
    session:ask_user(params, reply)
    return true
  elseif method == "exitPlanMode.request" and session then
    session:ask_plan(params, reply)
    return true
  elseif method == "autoModeSwitch.request" and session then
    session:ask_auto_mode(params, reply)
    return true
  end
end

local function start()
  local started, problem
  local own = vim.tbl_extend("force", {}, handlers)
  function own.ended(reason)
    if peer ~= started then
      return
    end
    peer, ready = nil, false
    settle(reason)
    local attached = sessions
    sessions = {}
    for _, session in pairs(attached) do
      session:server_gone(reason)
    end
  end
  started, problem = rpc.start(config.command(), { env = config.options.env, cwd = vim.fn.getcwd() }, own)
  if not started then
    return settle(problem .. "; see :checkhealth jumpseat")
  end
  peer = started
  local timer = vim.defer_fn(function()
    if peer == started and not ready then
      started.broken = ("the server did not respond within %d s"):format(HANDSHAKE_MS / 1000)
      started:kill()
    end
  end, HANDSHAKE_MS)
  started:request("connect", {}, function(failure, result)
    if timer:is_active() then
      timer:stop()
    end
    if started.gone then
      return
    end
    local version = not failure and result.protocolVersion
    if version ~= PROTOCOL then
      local got = failure and failure.message or ("protocol %s"):format(version)
      started.broken = ("incompatible server: expected protocol %d, got %s"):format(PROTOCOL, got)
      return started:kill()
    end
    ready = true
    settle()
  end)
end

--- Call back with a connected server, started if necessary, or with an error message.
---@param callback fun(problem: string?, peer: jumpseat.Peer?)
function M.get(callback)
  if peer and ready and not peer.gone then
    return callback(nil, peer)
  end
  waiting[#waiting + 1] = callback
  if not peer then
    start()
  end
end

--- Send a request to the current server, started if necessary. `done` as in `Peer:request`.
function M.request(method, params, done)
  M.get(function(problem, running)
    if not running then
      return done and done({ message = problem or "no server is running" })
    end
    running:request(method, params, done)
  end)
end

--- Deliver the events of a session to it.
---@param session jumpseat.Session
function M.attach(session)
  sessions[session.id] = session
end

--- Stop the server; sessions stay on disk.
function M.stop()
  if peer then
    peer:stop()
  end
end

return M
