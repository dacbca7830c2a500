// The type of a board as a file: that of Grafana's @grafana/schema, strict in what it leaves open.
import type { AnnotationQuery, Dashboard, DataQuery, Panel, RowPanel } from '@grafana/schema';
import type * as bargauge from '@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen.d.ts';
import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen.d.ts';
import type * as timeseries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen.d.ts';

// In a file a value of an enum of strings is its text.
type Plain<T> = T extends string ? `${T}` : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;

// The schema has no types for Prometheus: these are the fields that its data source reads.
interface PrometheusQuery extends Pick<DataQuery, 'refId' | 'datasource'> {
  expr: string;
  legendFormat?: string;
  instant?: boolean;
  range?: boolean;
}
interface PrometheusAnnotation extends AnnotationQuery {
  expr: string;
  titleFormat: string;
  textFormat: string;
  tagKeys: string;
}

type Drawn<Type extends string, Options, Custom> = Omit<Plain<Panel>, 'type' | 'options' | 'targets' | 'fieldConfig'> & {
  type: Type;
  title: string;
  description: string;
  options: Plain<Options>;
  targets: PrometheusQuery[];
  fieldConfig: {
    defaults: Omit<Plain<NonNullable<Panel['fieldConfig']>['defaults']>, 'custom'> & { custom?: Plain<Custom> };
    overrides: never[];
  };
};
export type Lines = Drawn<'timeseries', timeseries.Options, timeseries.FieldConfig>;
export type Numbers = Drawn<'stat', stat.Options, never>;
export type Bars = Drawn<'bargauge', bargauge.Options, never>;
type Shown = Lines | Numbers | Bars;
type Row = Omit<Plain<RowPanel>, 'panels'> & { panels: Shown[] };
export type Board = Omit<Plain<Dashboard>, 'annotations' | 'panels'> & {
  annotations: { list: Plain<PrometheusAnnotation>[] };
  panels: Array<Row | Shown>;
};
