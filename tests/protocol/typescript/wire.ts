// JSON-RPC around the generated types: what a client in TypeScript would write once.

import type { Protocol } from "./protocol";

type Methods = Protocol["clientRequests"];
type Questions = Protocol["serverRequests"];
type Notifications = Protocol["notifications"];

export type Params<M extends keyof Methods> = Methods[M]["params"];
export type Result<M extends keyof Methods> = Methods[M]["result"];
export type Question<M extends keyof Questions> = Questions[M]["params"];
export type Answer<M extends keyof Questions> = Questions[M]["result"];
export type Told<M extends keyof Notifications> = Notifications[M];
export type Failure = Protocol["error"];
