--- `:checkhealth jumpseat`: check Neovim, and that the server runs and responds.

local config = require("jumpseat.config")
local rpc = require("jumpseat.rpc")

local M = {}

local PROTOCOL = 3
local TIMEOUT_MS = 15000

--- Send a request and wait for the response.
local function call(peer, method, params)
  local problem, result, done
  peer:request(method, params, function(failure, answer)
    problem, result, done = failure and failure.message, answer, true
  end)
  if not vim.wait(TIMEOUT_MS, function()
    return done
  end, 10) then
    problem = ("no response to %s within %d s"):format(method, TIMEOUT_MS / 1000)
  end
  return problem, result
end

local function check_server()
  local health, cmd = vim.health, config.command()
  local path = vim.fn.exepath(cmd[1])
  if path == "" then
    return health.error(("%q was not found or is not executable"):format(cmd[1]), {
      "install the server from a checkout: pip install ~/src/jumpseat",
      'or set its path: require("jumpseat").setup({ cmd = { "~/src/jumpseat/.venv/bin/jumpseat" } })',
      "if Neovim was not started from a terminal, its $PATH may differ; it is: " .. (vim.env.PATH or ""),
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
    return health.error("cannot connect to the server: " .. failure)
  end
  local took = (vim.uv.hrtime() - started) / 1e6
  health.ok(("version %s, started in %d ms"):format(greeting.version, took))
  if greeting.protocolVersion == PROTOCOL then
    health.ok(("protocol %d"):format(PROTOCOL))
  else
    health.error(("expected protocol %d, got %s"):format(PROTOCOL, greeting.protocolVersion))
  end
  local lost, pong = call(peer, "ping", { message = "health" })
  if lost or pong.message ~= "pong: health" then
    health.error("ping: " .. (lost or "unexpected response"))
  else
    health.ok("ping: ok")
  end
  local advice = {
    "run `jumpseat setup` in a terminal, which connects a provider and chooses a model",
    "or set a key such as $OPENAI_API_KEY or $ANTHROPIC_API_KEY before starting Neovim",
    "or set `provider` in setup(): :help jumpseat-options",
    "or configure the server in its config.toml",
  }
  if config.options.provider then
    health.ok("models: from the provider in setup()")
    return peer:stop()
  end
  local unlisted, found = call(peer, "models.list", {})
  if unlisted then
    health.warn("models: " .. unlisted, advice)
  elseif #found.models == 0 then
    health.warn("no models are configured", advice)
  else
    health.ok(("models: %d available"):format(#found.models))
  end
  peer:stop()
end

function M.check()
  vim.health.start("jumpseat")
  if vim.fn.has("nvim-0.10") == 0 then
    return vim.health.error("Neovim 0.10 or newer is required")
  end
  vim.health.ok("Neovim " .. tostring(vim.version()))
  if pcall(vim.treesitter.language.add, "markdown") and #vim.api.nvim_get_runtime_file("parser/markdown.*", false) > 0 then
    vim.health.ok("tree-sitter parser for markdown: found")
  else
    vim.health.info("no tree-sitter parser for markdown: the chat uses plain syntax highlighting")
  end
  check_server()
end

return M
