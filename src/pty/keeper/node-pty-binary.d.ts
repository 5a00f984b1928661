// The alias of node-pty has no types for the file that gives its native functions.
declare module 'node-pty/requireBinary.js' {
  export function requireBinary(file: string): unknown;
}
