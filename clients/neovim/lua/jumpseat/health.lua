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
  local health, cmd = vim.health, config.command()
  local path = vim.fn.exepath(cmd[1])
  if path == "" then
    return health.error(("%q is not to be found, or cannot be run"):format(cmd[1]), {
      "install the server: pip install jumpseat, or from a checkout: pip install ~/src/jumpseat",
      'or say where it is: require("jumpseat").setup({ cmd = { "~/src/jumpseat/.venv/bin/jumpseat" } })',
      "a Neovim that was not started from a terminal may have another $PATH; this one has: " .. (vim.env.PATH or ""),
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
  local advice = {
    "set a key such as $OPENAI_API_KEY or $ANTHROPIC_API_KEY before Neovim is started",
    "or name a `provider` in setup(): :help jumpseat-options",
    "or write a config.toml for the server",
  }
  if config.options.provider then
    health.ok("models: those of the provider in setup()")
    return peer:stop()
  end
  local unlisted, found = call(peer, "models.list", {})
  if unlisted then
    health.warn("models: " .. unlisted, advice)
  elseif #found.models == 0 then
    health.warn("no models are configured", advice)
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
