from better_compute.contract.migrations import ComputeMigration, RunSqlFile


class Migration(ComputeMigration):
    dependencies = [("compute", "0010_queue_history")]
    operations = [RunSqlFile("better_compute.store.schema", "0011_retention.sql", "0011_retention_down.sql")]
