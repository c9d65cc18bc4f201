/**
 * What a runtime said when it could not start a process, in the words that Kubernetes users know from runc and containerd:
 * `exec: "/no/such": stat /no/such: no such file or directory`.
 */
export function startMessage(raw: string, command: readonly string[]): string {
  const program = command[0] ?? "";
  const text = clean(raw);
  const quoted = JSON.stringify(program);
  if (
    /executable file .* not found|no such file or directory.*exec|exec.*no such file or directory|stat .*no such file/i.test(
      text,
    )
  ) {
    const reason = program.includes("/")
      ? `stat ${program}: no such file or directory`
      : "executable file not found in $PATH";
    return `exec: ${quoted}: ${reason}`;
  }
  if (/permission denied/i.test(text) && /exec/i.test(text)) return `exec: ${quoted}: permission denied`;
  if (/exec format error/i.test(text)) return `exec ${program}: exec format error`;
  return text;
}

/** A message about a process, as it reads within the answer of a runtime. */
export const runtimeMessage = (message: string): string =>
  message.startsWith("exec") ? `unable to start container process: ${message}` : message;

/** The last message of a log in crun's or runc's form, without its time and level. */
function clean(raw: string): string {
  const lines = raw
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const line = lines.findLast((candidate) => !/^\[?conmon/.test(candidate)) ?? lines.at(-1) ?? raw;
  const message = /msg="((?:[^"\\]|\\.)*)"/.exec(line)?.[1] ?? line;
  return message
    .replaceAll('\\"', '"')
    .replace(/^\S*T\S+Z?: /, "")
    .replace(/^(time="[^"]*" )?(level=\w+ )?/, "")
    .replace(/^(runc create failed|exec failed|container_linux.go\S*): /, "")
    .replace(/^unable to start container process: /, "")
    .trim();
}
