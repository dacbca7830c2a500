// Boards that are none: the compiler has to find what is wrong with each, or it complains of the line above it.
import type { Board, Lines } from './board';

const options: Lines['options'] = {
  legend: { calcs: [], displayMode: 'list', placement: 'bottom', showLegend: true },
  tooltip: { mode: 'multi', sort: 'desc' },
};
const given = { type: 'timeseries', title: 'Loss', description: 'Of the model.', options } as const;

export const right: Lines = { ...given, targets: [], fieldConfig: { defaults: { custom: { lineWidth: 2 } }, overrides: [] } };
// @ts-expect-error: a width is a number
export const width: Lines = { ...given, targets: [], fieldConfig: { defaults: { custom: { lineWidth: '2' } }, overrides: [] } };
// @ts-expect-error: there is no such style
export const style: Lines = { ...given, targets: [], fieldConfig: { defaults: { custom: { drawStyle: 'dots' } }, overrides: [] } };
// @ts-expect-error: there is no such field
export const field: Lines = { ...given, targets: [], fieldConfig: { defaults: { custom: { width: 2 } }, overrides: [] } };
// @ts-expect-error: a query has an expression
export const query: Lines = { ...given, targets: [{ refId: 'A' }], fieldConfig: { defaults: {}, overrides: [] } };
// @ts-expect-error: there is no such field
export const board: Board = { schemaVersion: 41, annotations: { list: [] }, panels: [], templates: [] };
