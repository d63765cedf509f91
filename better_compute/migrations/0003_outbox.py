from better_compute.contract.migrations import ComputeMigration, RunSqlFile


class Migration(ComputeMigration):
    dependencies = [("compute", "0002_work")]
    operations = [RunSqlFile("better_compute.store.schema", "0003_outbox.sql", "0003_outbox_down.sql")]
