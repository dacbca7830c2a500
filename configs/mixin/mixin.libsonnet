// The monitoring mixin of streamkernel (https://monitoring.mixins.dev): the files that `python -m configs.mixin` wrote, with
// other addresses and another matcher of targets where _config says so. Bounds of alerts are changed by that command.
local written = {
  runbooks: 'https://streamkernel.github.io/streamkernel/runbooks',
  dashboards: 'http://localhost:3000/dashboards?query=streamkernel',
  selector: 'job=~"streamkernel.*"',
};

{
  _config+:: {
    runbooksURL: written.runbooks,
    dashboardsURL: written.dashboards,
    streamkernelSelector: written.selector,
  },

  local config = $._config,
  local changed(text) = std.strReplace(
    std.strReplace(
      std.strReplace(text, written.runbooks, config.runbooksURL),
      written.dashboards,
      config.dashboardsURL
    ),
    written.selector,
    config.streamkernelSelector
  ),
  local everywhere(value) =
    if std.isString(value) then changed(value)
    else if std.isArray(value) then std.map(everywhere, value)
    else if std.isObject(value) then std.mapWithKey(function(name, inner) everywhere(inner), value)
    else value,

  grafanaDashboards+:: {
    'streamkernel.json': everywhere(import 'dashboards/streamkernel.json'),
    'streamkernel-serve.json': everywhere(import 'dashboards/streamkernel-serve.json'),
  },
  prometheusRules+:: everywhere(std.parseYaml(importstr 'rules.yaml')),
  prometheusAlerts+:: everywhere(std.parseYaml(importstr 'alerts.yaml')),
}
