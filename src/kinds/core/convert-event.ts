import { deepClone } from "#base";
import type { Event, EventsEvent } from "../generated/types.ts";

/** A core/v1 Event as events.k8s.io/v1 shows it. https://github.com/kubernetes/enhancements KEP-383 */
export function toEventsEvent(object: Event): EventsEvent {
  const event = deepClone<Event>(object);
  return {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata: event.metadata,
    eventTime: event.eventTime ?? (null as unknown as string),
    ...(event.series ? { series: event.series as NonNullable<EventsEvent["series"]> } : {}),
    ...optional("reportingController", event.reportingComponent),
    ...optional("reportingInstance", event.reportingInstance),
    ...optional("action", event.action),
    ...optional("reason", event.reason),
    regarding: event.involvedObject,
    ...(event.related ? { related: event.related } : {}),
    ...optional("note", event.message),
    ...optional("type", event.type),
    deprecatedSource: event.source ?? {},
    deprecatedFirstTimestamp: event.firstTimestamp ?? (null as unknown as string),
    deprecatedLastTimestamp: event.lastTimestamp ?? (null as unknown as string),
    ...(event.count ? { deprecatedCount: event.count } : {}),
  };
}

/** The way back. */
export function fromEventsEvent(object: EventsEvent): Event {
  const event = deepClone<EventsEvent>(object);
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: event.metadata,
    involvedObject: event.regarding ?? {},
    ...optional("reason", event.reason),
    ...optional("message", event.note),
    source: event.deprecatedSource ?? {},
    firstTimestamp: event.deprecatedFirstTimestamp ?? (null as unknown as string),
    lastTimestamp: event.deprecatedLastTimestamp ?? (null as unknown as string),
    ...(event.deprecatedCount ? { count: event.deprecatedCount } : {}),
    ...optional("type", event.type),
    eventTime: event.eventTime ?? (null as unknown as string),
    ...(event.series ? { series: event.series } : {}),
    ...optional("action", event.action),
    ...(event.related ? { related: event.related } : {}),
    reportingComponent: event.reportingController ?? "",
    reportingInstance: event.reportingInstance ?? "",
  };
}

function optional<K extends string>(name: K, value: string | undefined): { [P in K]?: string } {
  return (value ? { [name]: value } : {}) as { [P in K]?: string };
}

/** Field selectors of events.k8s.io/v1. */
export function eventsEventFields(event: EventsEvent): Record<string, string> {
  const { regarding: object = {}, deprecatedSource } = event;
  return {
    "regarding.kind": object.kind ?? "",
    "regarding.namespace": object.namespace ?? "",
    "regarding.name": object.name ?? "",
    "regarding.uid": object.uid ?? "",
    "regarding.apiVersion": object.apiVersion ?? "",
    "regarding.resourceVersion": object.resourceVersion ?? "",
    "regarding.fieldPath": object.fieldPath ?? "",
    reason: event.reason ?? "",
    reportingController: event.reportingController ?? "",
    source: deprecatedSource?.component || event.reportingController || "",
    type: event.type ?? "",
  };
}
