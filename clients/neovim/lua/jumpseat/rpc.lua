--- A JSON-RPC 2.0 peer over the pipes of a child process: frames, ids, requests in both directions, shutdown.
--- Knows nothing of sessions. Callbacks run on the main loop, in the order of the wire.

local M = {}

local STDERR_BYTES = 8 * 1024
local METHOD_NOT_FOUND, INTERNAL_ERROR = -32601, -32603

-- Decoder ----------------------------------------------------------------------------------------------------------

---@class jumpseat.Decoder
local Decoder = {}
Decoder.__index = Decoder

---@return jumpseat.Decoder
function M.decoder()
  return setmetatable({ parts = {}, size = 0, need = 1 }, Decoder)
end

--- Add bytes and return the complete bodies. Raises an error on an invalid frame.
---@param chunk string
---@return string[]
function Decoder:feed(chunk)
  self.parts[#self.parts + 1] = chunk
  self.size = self.size + #chunk
  local bodies = {}
  -- The parts of a long body are concatenated once, when all of it has been received.
  if self.size < self.need then
    return bodies
  end
  local text, at = table.concat(self.parts), 1
  while #text - at + 1 >= self.need do
    if self.length then
      bodies[#bodies + 1] = text:sub(at, at + self.length - 1)
      at = at + self.length
      self.length, self.need = nil, 1
    else
      local first, last = text:find("\r\n\r\n", at, true)
      if not first then
        break
      end
      local head = text:sub(at, first - 1)
      self.length = tonumber(head:lower():match("content%-length:%s*(%d+)"))
      if not self.length then
        error("the server's output is not JSON-RPC: " .. head:sub(1, 80), 0)
      end
      self.need, at = self.length, last + 1
    end
  end
  text = text:sub(at)
  self.parts, self.size = { text }, #text
  return bodies
end

-- The valid byte sequences of UTF-8 beyond ASCII, without overlong forms and surrogates.
local SEQUENCES = {
  "^[\194-\223][\128-\191]",
  "^\224[\160-\191][\128-\191]",
  "^[\225-\236\238\239][\128-\191][\128-\191]",
  "^\237[\128-\159][\128-\191]",
  "^\240[\144-\191][\128-\191][\128-\191]",
  "^[\241-\243][\128-\191][\128-\191][\128-\191]",
  "^\244[\128-\143][\128-\191][\128-\191]",
}
local REPLACEMENT = "\239\191\189"

--- Replace invalid UTF-8 by U+FFFD. `run` contains no ASCII.
local function repaired(run)
  local out, at = {}, 1
  while at <= #run do
    local found
    for _, sequence in ipairs(SEQUENCES) do
      found = run:match(sequence, at)
      if found then
        break
      end
    end
    out[#out + 1] = found or REPLACEMENT
    at = at + (found and #found or 1)
  end
  return table.concat(out)
end

---@param message table
---@return string
function M.frame(message)
  -- A buffer may hold any bytes, but the wire is UTF-8: the server would not answer an invalid message.
  local body = vim.json.encode(message):gsub("[\128-\255]+", repaired)
  return ("Content-Length: %d\r\n\r\n%s"):format(#body, body)
end

-- Peer -------------------------------------------------------------------------------------------------------------

---@class jumpseat.Peer
---@field gone? string the reason why the connection has ended
local Peer = {}
Peer.__index = Peer

---@class jumpseat.PeerHandlers
---@field notified? fun(method: string, params: table)
---@field requested? fun(method: string, params: table, reply: fun(result: any, problem: string?)): boolean?
---@field ended? fun(reason: string)

--- Start a process and connect to it. Returns nil and an error message if it cannot be run.
---@param cmd string[]
---@param opts {env?: table<string, string>, cwd?: string}
---@param handlers jumpseat.PeerHandlers
---@return jumpseat.Peer?, string?
function M.start(cmd, opts, handlers)
  local self = setmetatable({ handlers = handlers, pending = {}, last_id = 0, stderr = "", queue = {} }, Peer)
  local decoder = M.decoder()

  local function stdout(_, data)
    if not data or self.broken then
      return
    end
    local ok, bodies = pcall(decoder.feed, decoder, data)
    if not ok then
      self.broken = tostring(bodies)
      vim.schedule(function()
        self:kill()
      end)
      return
    end
    for _, body in ipairs(bodies) do
      self.queue[#self.queue + 1] = body
    end
    if #bodies > 0 and not self.draining then
      self.draining = true
      vim.schedule(function()
        self:drain()
      end)
    end
  end

  local function stderr(_, data)
    if data then
      self.stderr = (self.stderr .. data):sub(-STDERR_BYTES)
    end
  end

  local function exited(done)
    vim.schedule(function()
      self:drain()
      self:finish(done)
    end)
  end

  local options =
    { stdin = true, stdout = stdout, stderr = stderr, env = opts.env, cwd = opts.cwd, text = false }
  local ok, process = pcall(vim.system, cmd, options, exited)
  if not ok then
    -- Without the place in Neovim's own Lua code.
    local reason = tostring(process):match("[^\n]*"):gsub("^%S*%.lua:%d+: ", "")
    return nil, ("cannot run %q: %s"):format(cmd[1], reason)
  end
  self.process = process
  return self
end

--- Send a request. `done(problem, result)` is called exactly once, also if the connection ends; `problem` is
--- {code?, message}.
---@param method string
---@param params table
---@param done? fun(problem: {code?: integer, message: string}?, result: any)
function Peer:request(method, params, done)
  done = done or function() end
  if self.gone then
    local reason = self.gone
    return vim.schedule(function()
      done({ message = reason })
    end)
  end
  self.last_id = self.last_id + 1
  self.pending[self.last_id] = done
  if next(params) == nil then
    params = vim.empty_dict()
  end
  self:send({ jsonrpc = "2.0", id = self.last_id, method = method, params = params })
end

--- Close the server's input, upon which it saves its state and exits; kill it if it does not.
function Peer:stop()
  pcall(self.process.write, self.process, nil)
  vim.defer_fn(function()
    self:kill()
  end, 3000)
end

function Peer:kill()
  if not self.gone then
    pcall(self.process.kill, self.process, "sigkill")
  end
end

---@private
function Peer:send(message)
  -- If the process has just died, its exit is reported instead.
  pcall(self.process.write, self.process, M.frame(message))
end

---@private
function Peer:drain()
  self.draining = false
  while #self.queue > 0 do
    local bodies = self.queue
    self.queue = {}
    for _, body in ipairs(bodies) do
      local ok, message = pcall(vim.json.decode, body, { luanil = { object = true, array = true } })
      if ok and type(message) == "table" then
        self:dispatch(message)
      end
    end
  end
end

--- Call a handler; an error in it is shown to the user and does not end the connection.
local function guarded(what, fn, ...)
  local ok, problem = xpcall(fn, debug.traceback, ...)
  if not ok then
    vim.notify(("jumpseat: %s failed: %s"):format(what, problem), vim.log.levels.ERROR)
  end
  return ok
end

---@private
function Peer:dispatch(message)
  local method, id = message.method, message.id
  if method == nil then
    local done = self.pending[id]
    self.pending[id or 0] = nil
    if done then
      guarded("the handler of a response", done, message.error, message.result)
    end
  elseif id == nil then
    if self.handlers.notified then
      guarded(method, self.handlers.notified, method, message.params or {})
    end
  else
    self:answer(method, id, message.params or {})
  end
end

---@private
function Peer:answer(method, id, params)
  local answered = false
  local function reply(result, problem)
    if answered or self.gone then
      return
    end
    answered = true
    if problem then
      self:send({ jsonrpc = "2.0", id = id, error = { code = INTERNAL_ERROR, message = problem } })
    else
      self:send({ jsonrpc = "2.0", id = id, result = result })
    end
  end
  local known
  local ok = guarded(method, function()
    known = self.handlers.requested and self.handlers.requested(method, params, reply)
  end)
  if not ok then
    reply(nil, "the client's handler of " .. method .. " failed")
  elseif not known and not answered then
    answered = true
    local problem = { code = METHOD_NOT_FOUND, message = "method not supported by this client: " .. method }
    self:send({ jsonrpc = "2.0", id = id, error = problem })
  end
end

---@private
function Peer:finish(done)
  local how = self.broken
  if not how then
    how = done.signal ~= 0 and ("was killed by signal %d"):format(done.signal) or ("exited with code %d"):format(done.code)
    how = "the server " .. how
  end
  local stderr = vim.trim(self.stderr)
  -- The last line of a server that refuses to start says why.
  local reason = stderr:match("^error: ([^\n]*)$") or stderr:match("\nerror: ([^\n]*)$")
  self.gone = reason and how .. ": " .. reason or stderr == "" and how or how .. "; stderr:\n" .. stderr
  local pending = self.pending
  self.pending = {}
  for _, callback in pairs(pending) do
    guarded("the handler of a response", callback, { message = self.gone })
  end
  if self.handlers.ended then
    guarded("the handler of the server's exit", self.handlers.ended, self.gone)
  end
end

return M
