// Prompts as people wrote them. Pure.

const END = "</user_command>";
const START = /\n\n<user_command line="([^"\n]*)">\n/;

/** Split a prompt from the commands of the user whose output the terminal chat has added for the model. */
export function splitPrompt(content: string): { text: string; commands: string[] } {
  let text = content;
  const commands: string[] = [];
  while (text.endsWith(END)) {
    const from = Math.max(0, text.lastIndexOf(END, text.length - END.length - 1));
    const found = START.exec(text.slice(from));
    if (!found) break;
    commands.unshift(found[1]!);
    text = text.slice(0, from + found.index);
  }
  return { text, commands };
}
