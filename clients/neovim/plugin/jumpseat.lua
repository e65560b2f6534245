if vim.g.loaded_jumpseat then
  return
end
vim.g.loaded_jumpseat = true

if vim.fn.has("nvim-0.10") == 0 then
  vim.notify("jumpseat needs Neovim 0.10 or newer", vim.log.levels.ERROR)
  return
end

local command = vim.api.nvim_create_user_command

require("jumpseat").start()

-- Time limit of a completion that asks the server.
local TIMEOUT_MS = 3000

--- Return the result of a function that calls back with `problem, result`; nil on error or time-out.
local function answer_of(ask)
  local done, found
  ask(function(problem, result)
    done, found = true, not problem and result or nil
  end)
  vim.wait(TIMEOUT_MS, function()
    return done
  end, 5)
  return found
end

--- Return the names that begin with `start`.
local function matching(start, names)
  return vim.tbl_filter(function(name)
    return vim.startswith(name, start)
  end, names)
end

local function models(start)
  local found = answer_of(function(done)
    require("jumpseat.models").list(require("jumpseat").chat().session, done)
  end)
  return matching(
    start,
    vim.tbl_map(function(model)
      return model.id
    end, found or {})
  )
end

local function sessions(start)
  local found = answer_of(require("jumpseat").sessions)
  return matching(
    start,
    vim.tbl_map(function(one)
      return one.sessionId
    end, found or {})
  )
end

local function modes(start)
  return matching(start, require("jumpseat").modes())
end

command("Jumpseat", function(call)
  local jumpseat = require("jumpseat")
  if call.range > 0 then
    jumpseat.attach(call.line1, call.line2)
  end
  jumpseat.open()
  if call.args ~= "" then
    jumpseat.send(call.args, call.bang)
  end
end, {
  nargs = "*",
  range = true,
  bang = true,
  complete = "file",
  desc = "Open the chat; send a prompt with the lines of the range; with !, add it to the running turn",
})

command("JumpseatToggle", function()
  require("jumpseat").toggle()
end, { desc = "Open or close the chat" })

command("JumpseatNew", function()
  require("jumpseat").new()
end, { desc = "Open a new chat" })

command("JumpseatStop", function()
  require("jumpseat").stop()
end, { desc = "Stop the running turn" })

command("JumpseatModel", function(call)
  require("jumpseat").model(call.args)
end, { nargs = "?", complete = models, desc = "Choose a model" })

command("JumpseatMode", function(call)
  require("jumpseat").mode(call.args)
end, { nargs = "?", complete = modes, desc = "Choose a mode" })

command("JumpseatResume", function(call)
  require("jumpseat").resume(call.args)
end, { nargs = "?", complete = sessions, desc = "Resume an earlier session of this folder" })
