// Messages in a stream of bytes: each after a header with its length, as in LSP.

const HEADER_END = Buffer.from("\r\n\r\n");
const LONGEST_HEADER = 4096;

export function frame(message: string): Buffer {
  const body = Buffer.from(message);
  return Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]);
}

/** Decodes the messages of a stream. */
export class Frames {
  private parts: Buffer[] = [];
  private held = 0;
  private needed = 0;

  /** Return the messages that are complete with further bytes. Throws an `Error` if the stream is no sequence of messages. */
  push(chunk: Buffer): string[] {
    this.parts.push(chunk);
    this.held += chunk.length;
    // A long message arrives in many parts, which are joined once.
    if (this.held < this.needed) return [];
    let rest = this.parts.length === 1 ? chunk : Buffer.concat(this.parts);
    const messages: string[] = [];
    this.needed = 0;
    for (;;) {
      const end = rest.indexOf(HEADER_END);
      if (end < 0) {
        if (rest.length > LONGEST_HEADER) throw new Error("the server sent something other than messages");
        break;
      }
      const length = /(?:^|\r\n)content-length: *(\d+)/i.exec(rest.toString("latin1", 0, end))?.[1];
      if (length === undefined) throw new Error("the server sent a message without its length");
      const begin = end + HEADER_END.length;
      const total = begin + Number(length);
      if (rest.length < total) {
        this.needed = total;
        break;
      }
      messages.push(rest.toString("utf8", begin, total));
      rest = rest.subarray(total);
    }
    this.parts = rest.length > 0 ? [rest] : [];
    this.held = rest.length;
    return messages;
  }
}
