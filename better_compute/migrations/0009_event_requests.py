from better_compute.contract.migrations import ComputeMigration, RunSqlFile


class Migration(ComputeMigration):
    dependencies = [("compute", "0008_seal_keys")]
    operations = [RunSqlFile("better_compute.store.schema", "0009_event_requests.sql", "0009_event_requests_down.sql")]
