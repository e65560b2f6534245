--- `:checkhealth jumpseat`: is there a Neovim and a server to work with, and does the server answer.

local config = require("jumpseat.config")
local rpc = require("jumpseat.rpc")

local M = {}

local PROTOCOL = 3
local PATIENCE_MS = 15000

--- Send a request and wait for the answer.
local function call(peer, method, params)
  local problem, result, done
  peer:request(method, params, function(failure, answer)
    problem, result, done = failure and failure.message, answer, true
  end)
  if not vim.wait(PATIENCE_MS, function()
    return done
  end, 10) then
    problem = ("no answer to %s within %d s"):format(method, PATIENCE_MS / 1000)
  end
  return problem, result
end

local function check_server()
  local health, cmd = vim.health, config.options.cmd
  local path = vim.fn.exepath(cmd[1])
  if path == "" then
    return health.error(("%q is not to be found"):format(cmd[1]), {
      "install it: pip install jumpseat",
      'or name it: require("jumpseat").setup({ cmd = { "/path/to/jumpseat" } })',
    })
  end
  health.ok("server: " .. path)

  local peer, problem = rpc.start(config.command(), { env = config.options.env }, {})
  if not peer then
    return health.error(problem)
  end
  local started = vim.uv.hrtime()
  local failure, greeting = call(peer, "connect", {})
  if failure then
    peer:kill()
    return health.error("the server does not answer: " .. failure)
  end
  local took = (vim.uv.hrtime() - started) / 1e6
  health.ok(("version %s, started in %d ms"):format(greeting.version, took))
  if greeting.protocolVersion == PROTOCOL then
    health.ok(("protocol %d"):format(PROTOCOL))
  else
    health.error(("it speaks protocol %s, this plugin speaks %d"):format(greeting.protocolVersion, PROTOCOL))
  end
  local lost, pong = call(peer, "ping", { message = "health" })
  if lost or pong.message ~= "pong: health" then
    health.error("ping: " .. (lost or "a strange answer"))
  else
    health.ok("ping: answered")
  end
  local unlisted, found = call(peer, "models.list", {})
  if unlisted then
    health.warn("models: " .. unlisted)
  elseif #found.models == 0 and not config.options.provider then
    health.warn("no models are configured", { "set a key such as OPENAI_API_KEY, or `provider` in setup()" })
  else
    health.ok(("models: %d can be chosen"):format(#found.models))
  end
  peer:stop()
end

function M.check()
  vim.health.start("jumpseat")
  if vim.fn.has("nvim-0.10") == 0 then
    return vim.health.error("Neovim 0.10 or newer is needed")
  end
  vim.health.ok("Neovim " .. tostring(vim.version()))
  if pcall(vim.treesitter.language.add, "markdown") and #vim.api.nvim_get_runtime_file("parser/markdown.*", false) > 0 then
    vim.health.ok("markdown is highlighted by tree-sitter")
  else
    vim.health.info("no tree-sitter parser for markdown: the chat uses plain syntax highlighting")
  end
  check_server()
end

return M
