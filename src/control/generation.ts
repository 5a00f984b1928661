// The code contract of a chat daemon: what controller and daemon must agree on across processes.
// Bump it when the meaning of lock, state.json, control.json, the command documents or their order
// changes; a test fails when that code changed and the number did not.

export const CHAT_DAEMON_GENERATION = 1;
