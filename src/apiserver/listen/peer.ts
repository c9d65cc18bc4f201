import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { UserInfo } from "#kinds";

/** What the connection itself says about who is at its other end. */
export interface Peer {
  /** Verified against the instance's authority. */
  readonly clientCertificate?: {
    readonly commonName: string;
    readonly organizations: readonly string[];
    /** SHA-256 of the certificate, hexadecimal. */
    readonly fingerprint?: string;
  };
  /** A certificate was shown that the authority did not sign, or that has expired. */
  readonly badCertificate?: true;
  /** The transport vouches for the user: the local socket that only its owner can open. */
  readonly user?: UserInfo;
}

const peers = new WeakMap<Socket, Peer>();
const NOBODY: Peer = {};

/** The peer of the request's connection, read once per connection. */
export function peerOf(req: IncomingMessage): Peer {
  return peers.get(req.socket) ?? remember(req.socket);
}

/** Says who is behind a connection that needs no certificate. */
export function vouch(socket: Socket, user: UserInfo): void {
  peers.set(socket, { user });
}

function remember(socket: Socket): Peer {
  const peer = socket instanceof TLSSocket ? certificateOf(socket) : NOBODY;
  peers.set(socket, peer);
  return peer;
}

function certificateOf(socket: TLSSocket): Peer {
  const certificate = socket.getPeerCertificate();
  const subject = certificate.subject as Record<string, string | string[]> | undefined;
  if (!subject) return NOBODY;
  if (!socket.authorized) return { badCertificate: true };
  const list = (value: string | string[] | undefined) => (value === undefined ? [] : [value].flat());
  const fingerprint = certificate.fingerprint256.replaceAll(":", "").toLowerCase();
  return { clientCertificate: { commonName: list(subject.CN)[0] ?? "", organizations: list(subject.O), fingerprint } };
}
