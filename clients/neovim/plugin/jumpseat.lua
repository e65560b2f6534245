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

command("Jumpseat", function(call)
  local jumpseat = require("jumpseat")
  if call.range > 0 then
    jumpseat.attach(call.line1, call.line2)
  end
  jumpseat.open()
  if call.args ~= "" then
    jumpseat.send(call.args)
  end
end, { nargs = "*", range = true, desc = "Open the chat; send a prompt, with the lines of the range" })

command("JumpseatToggle", function()
  require("jumpseat").toggle()
end, { desc = "Open or close the chat" })

command("JumpseatNew", function()
  require("jumpseat").new()
end, { desc = "Open another chat" })

command("JumpseatStop", function()
  require("jumpseat").stop()
end, { desc = "Stop what runs" })

command("JumpseatModel", function(call)
  require("jumpseat").model(call.args)
end, { nargs = "?", desc = "Choose a model" })

command("JumpseatResume", function(call)
  require("jumpseat").resume(call.args)
end, { nargs = "?", desc = "Go on with an earlier session of this folder" })
