/**
 * Return the absolute path of the `jumpseat` executable for this platform, which the Copilot SDKs take as the path of
 * their command.
 *
 * @throws Error if the package of this platform is not installed.
 */
export function executable(): string;
